//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package plugin

import "os"

// divertStdout returns standard output as it is. Only the variable os.Stdout is
// diverted here; code that kept its old value can still write into the protocol.
func divertStdout() (*os.File, error) { return os.Stdout, nil }
