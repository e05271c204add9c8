//go:build unix

package verify

import "syscall"

// kill ends the worker and what it may have started.
func (s *Session) kill() {
	if p := s.command.Process; p != nil {
		syscall.Kill(-p.Pid, syscall.SIGKILL)
	}
}
