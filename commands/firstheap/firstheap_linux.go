package firstheap

import (
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
