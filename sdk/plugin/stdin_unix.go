//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package plugin

import (
	"os"
	"runtime"
	"syscall"
)

// pollable returns f as a file on which a goroutine waits without keeping a thread: what
// was started just before then runs on that thread at once. Files that are no pipe or
// socket stay as they are. restore undoes it; f must not be closed before.
func pollable(f *os.File) (polled *os.File, restore func()) {
	same := func() {}
	info, err := f.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return f, same
	}
	fd := f.Fd()
	if syscall.SetNonblock(int(fd), true) != nil {
		return f, same
	}
	return os.NewFile(fd, f.Name()), func() {
		_ = syscall.SetNonblock(int(fd), false) // whoever shares the pipe expects it
		runtime.KeepAlive(f)
	}
}
