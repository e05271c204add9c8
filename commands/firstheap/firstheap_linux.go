package firstheap

import (
	"bytes"
	"math"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"
)

const (
	// hugePage is the size in bytes, and the alignment, of the region that holds the
	// first objects. Where huge pages are larger the request fails.
	hugePage = 2 << 20
	// madvCollapse is MADV_COLLAPSE of Linux 6.1.
	madvCollapse = 25
)

// idle reports whether no more processes run than there are processors: on a busy machine
// the call waits for every processor, ten milliseconds and more.
func idle() bool {
	fd, err := syscall.Open("/proc/loadavg", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer syscall.Close(fd)
	var text [64]byte
	n, err := syscall.Read(fd, text[:])
	if err != nil {
		return false
	}
	return running(text[:max(n, 0)]) <= runtime.NumCPU()
}

// running returns how many processes run, from the fourth field of /proc/loadavg,
// RUNNING/ALL; a large number where it cannot be read.
func running(loadavg []byte) int {
	for range 3 {
		_, rest, ok := bytes.Cut(loadavg, []byte(" "))
		if !ok {
			return math.MaxInt
		}
		loadavg = rest
	}
	digits, _, ok := bytes.Cut(loadavg, []byte("/"))
	n, err := strconv.Atoi(string(digits))
	if !ok || err != nil {
		return math.MaxInt
	}
	return n
}

// marker is an object on the heap, near which the next ones will lie.
var marker *[64]byte

// collapse replaces the pages of the region that holds marker by a huge page with
// the same contents.
func collapse() error {
	marker = new([64]byte)
	region := uintptr(unsafe.Pointer(marker)) &^ (hugePage - 1)
	if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, region, hugePage, madvCollapse); errno != 0 {
		return errno
	}
	return nil
}
