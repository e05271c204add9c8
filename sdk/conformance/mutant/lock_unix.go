//go:build unix

package mutant

import (
	"os"
	"syscall"
)

// tryLock takes the file's lock if nobody has it.
func tryLock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
