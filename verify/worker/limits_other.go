//go:build unix && !linux

package worker

// limitMemory does nothing where the system does not bound the address space; the
// heap's own limit stands.
func limitMemory() error { return nil }
