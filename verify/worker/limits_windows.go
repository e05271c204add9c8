package worker

import "runtime/debug"

// limitSelf bounds the heap; the parent's job object bounds the rest.
func limitSelf() error {
	debug.SetMemoryLimit(512 << 20)
	return nil
}
