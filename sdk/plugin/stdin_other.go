//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package plugin

import "os"

// pollable returns f as it is.
func pollable(f *os.File) (polled *os.File, restore func()) { return f, func() {} }
