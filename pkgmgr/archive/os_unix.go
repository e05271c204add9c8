//go:build unix

package archive

import "syscall"

// unixModes: files have an owner's execute bit, and set-id bits.
const unixModes = true

// openFlags keeps an open of what turned from a file into a pipe from waiting.
const openFlags = syscall.O_NONBLOCK
