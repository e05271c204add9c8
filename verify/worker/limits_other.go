//go:build unix && !linux

package main

// limitMemory does nothing where the system does not bound the address space; the
// heap's own limit stands.
func limitMemory() error { return nil }
