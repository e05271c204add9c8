package verify

import "os/exec"

func supervise(*exec.Cmd) {}

func start(c *exec.Cmd, _ <-chan struct{}) error { return c.Start() }

func (s *Session) kill() {
	if p := s.command.Process; p != nil {
		p.Kill()
	}
}
