//go:build unix && !race

package runtime_test

const raced = false
