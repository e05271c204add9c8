//go:build unix && race

package runtime_test

// raced is true under the race detector, under which a process takes many times as
// long to start: the tests then do less of the same.
const raced = true
