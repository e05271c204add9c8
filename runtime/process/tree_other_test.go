//go:build !linux

package process_test

import "testing"

// helperMain has no helpers on systems whose trees are not tested.
func helperMain() {}

// wantNone cannot look at other processes here.
func wantNone(testing.TB, string, string) int { return 0 }
