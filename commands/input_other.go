//go:build !linux

package commands

// discardInput does nothing where no portable call does it.
func discardInput() {}
