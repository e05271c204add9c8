//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package plugin

import "net"

func dialUnix(path string) (net.Conn, error) { return net.Dial("unix", path) }
