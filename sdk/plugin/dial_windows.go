package plugin

import (
	"os"
	"syscall"
)

// dialUnix opens the host's named pipe, so that frames are read and written at the same
// time.
func dialUnix(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|syscall.FILE_FLAG_OVERLAPPED, 0)
}
