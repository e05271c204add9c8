//go:build !linux

package firstheap

func collapse() error { return nil }

func idle() bool { return false }
