//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package plugin

import "syscall"

func dup2(from, to int) error { return syscall.Dup2(from, to) }
