package receipts

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
)

var lockFileEx = syscall.NewLazyDLL("kernel32.dll").NewProc("LockFileEx")

const (
	lockfileFailImmediately = 1
	lockfileExclusive       = 2
	errorLockViolation      = syscall.Errno(33)
	errorIOPending          = syscall.Errno(997)
)

// tryLock opens a file, creates it if need be, and takes an exclusive lock that
// lasts until it is closed or the process is gone. It returns nil if somebody has
// the lock, this process included.
func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	var overlapped syscall.Overlapped
	ok, _, err := lockFileEx.Call(f.Fd(), lockfileExclusive|lockfileFailImmediately, 0, 1, 0, uintptr(unsafe.Pointer(&overlapped)))
	if ok != 0 {
		return f, nil
	}
	f.Close()
	if errors.Is(err, errorLockViolation) || errors.Is(err, errorIOPending) {
		return nil, nil
	}
	return nil, os.NewSyscallError("LockFileEx", err)
}

// syncDirectory does nothing: Windows keeps directory entries with the file system's
// own journal and has no call for it.
func syncDirectory(string) error { return nil }
