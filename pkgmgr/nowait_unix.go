//go:build unix

package pkgmgr

import "syscall"

// noWait keeps the opening of a pipe from waiting for its other end. It changes
// nothing for a regular file.
const noWait = syscall.O_NONBLOCK
