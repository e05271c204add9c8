package worker

import "golang.org/x/sys/unix"

// limitMemory bounds the address space: a Go program reserves about 1 GiB of it
// without using it.
func limitMemory() error {
	const most = 4 << 30
	return unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: most, Max: most})
}
