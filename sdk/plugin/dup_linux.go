package plugin

import "syscall"

// dup2 uses dup3, because newer architectures of Linux have no dup2.
func dup2(from, to int) error { return syscall.Dup3(from, to, 0) }
