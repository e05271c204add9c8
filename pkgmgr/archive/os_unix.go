//go:build unix

package archive

import "syscall"

// unixModes: files have an owner's execute bit, and set-id bits.
const unixModes = true

// openFlags keeps an open of what turned from a file into a pipe from waiting,
// and saves four system calls for each file: package os would otherwise set the
// flag, find that a regular file cannot be polled, and clear it.
const openFlags = syscall.O_NONBLOCK
