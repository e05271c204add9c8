//go:build unix

package worker

import (
	"runtime/debug"

	"golang.org/x/sys/unix"
)

const (
	maxMemory = 512 << 20 // bytes that the heap aims to stay below
	maxCPU    = 120       // seconds of processor time for all requests together
)

// limitSelf bounds what hostile documents can make the worker use.
func limitSelf() error {
	debug.SetMemoryLimit(maxMemory)
	for _, l := range []struct {
		what int
		most uint64
	}{
		{unix.RLIMIT_CPU, maxCPU},
		{unix.RLIMIT_CORE, 0},  // a core file would hold keys
		{unix.RLIMIT_FSIZE, 0}, // it writes no file
		{unix.RLIMIT_NOFILE, 64},
	} {
		var now unix.Rlimit
		if err := unix.Getrlimit(l.what, &now); err != nil {
			return err
		}
		now.Cur = min(now.Cur, l.most)
		now.Max = min(now.Max, l.most)
		if err := unix.Setrlimit(l.what, &now); err != nil {
			return err
		}
	}
	return limitMemory()
}
