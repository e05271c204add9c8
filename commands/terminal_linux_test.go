package commands

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// placeWithPlugin has the package demo in src, which asks for two scopes.
func placeWithPlugin(t *testing.T) *place {
	t.Helper()
	p := newPlace(t)
	if err := makePlugin(filepath.Join(p.dir, "src"), "demo", "1.0.0", "good"); err != nil {
		t.Fatal(err)
	}
	return p
}

// On a real terminal approve shows the review in colour, asks, and enables.
func TestApproveOnTerminal(t *testing.T) {
	p := placeWithPlugin(t)
	p.run("install", "src")
	s := onTerminal(t, 80, p.command(p.program, "approve", "demo"))
	review := s.await("[y/N] ")
	for _, want := range []string{"A trusted plugin runs as you", "What it asks for", "Trust exactly this package, sha256:", "\x1b["} {
		if !strings.Contains(review, want) {
			t.Errorf("no %q in\n%q", want, review)
		}
	}
	s.keys("y\r")
	s.await("Grant project.metadata.read")
	s.await("[y/N] ")
	s.keys("y\r")
	s.await("Grant project.operate")
	s.await("[y/N] ")
	s.keys("n\r")
	if code, rest := s.end(); code != exitOK || !strings.Contains(rest, "Enabled") || !strings.Contains(rest, "withheld") {
		t.Errorf("exit %d, %q", code, rest)
	}
	if list := p.run("list"); !strings.Contains(list, "enabled") || strings.Contains(list, "project.operate") || strings.Contains(list, "\x1b") {
		t.Errorf("%q", list)
	}
}

// What was typed before the first question answers none.
func TestApproveTakesNoEarlyAnswers(t *testing.T) {
	p := placeWithPlugin(t)
	p.run("install", "src")
	s := onTerminal(t, 80, p.command(p.program, "approve", "demo"))
	s.keys("y\ry\ry\ry\r")
	s.await("[y/N] ")
	s.keys("\x03")
	if code, rest := s.end(); code != exitInterrupted || strings.Contains(rest, "Grant") {
		t.Errorf("exit %d, %q", code, rest)
	}
	if list := p.run("list"); !strings.Contains(list, "untrusted") {
		t.Errorf("%q", list)
	}
}

// Ctrl-C at a question ends approve and changes nothing.
func TestApproveInterruptedOnTerminal(t *testing.T) {
	p := placeWithPlugin(t)
	p.run("install", "src")
	s := onTerminal(t, 80, p.command(p.program, "approve", "demo"))
	s.await("[y/N] ")
	s.keys("\x03")
	if code, rest := s.end(); code != exitInterrupted || !strings.Contains(rest, "nothing was changed") {
		t.Errorf("exit %d, %q", code, rest)
	}
	if list := p.run("list"); !strings.Contains(list, "untrusted") {
		t.Errorf("%q", list)
	}
}

// Colour is for terminals that were not told otherwise.
func TestColourOnTerminal(t *testing.T) {
	p := placeWithPlugin(t)
	p.run("install", "src")
	for _, c := range []struct {
		args     []string
		env      string
		coloured bool
	}{
		{[]string{"list"}, "", true},
		{[]string{"list", "--no-color"}, "", false},
		{[]string{"list"}, "NO_COLOR=1", false},
		{[]string{"list"}, "NO_COLOR=", true},
		{[]string{"list"}, "TERM=dumb", false},
		{[]string{"list", "--json"}, "", false},
	} {
		cmd := p.command(p.program, c.args...)
		if c.env != "" {
			cmd.Env = append(cmd.Env, c.env)
		}
		code, text := onTerminal(t, 80, cmd).end()
		if code != exitOK || !strings.Contains(text, "demo") || strings.Contains(text, "\x1b[") != c.coloured {
			t.Errorf("%q %s: exit %d, %q", c.args, c.env, code, text)
		}
	}
}

// A bar appears when work takes long, here because another process holds the data
// directory's lock, and is gone in the end.
func TestBarOnTerminal(t *testing.T) {
	p := placeWithPlugin(t)
	p.run("install", "src")
	if err := makePlugin(filepath.Join(p.dir, "src"), "demo", "2.0.0", "good"); err != nil {
		t.Fatal(err)
	}
	lock, err := os.Open(filepath.Join(p.dir, ".local", "share", "switchyard", "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	s := onTerminal(t, 80, p.command(p.program, "install", "src"))
	if before := s.await("\r\x1b[Kinstalling demo 2.0.0"); before != "\r\x1b[Kinstalling demo 2.0.0" {
		t.Errorf("written before the bar: %q", before)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	code, rest := s.end()
	bar, text, ok := strings.Cut(rest, "Installed")
	if code != exitOK || !ok || !strings.HasSuffix(bar, "\r\x1b[K") || strings.Contains(text, "\x1b[K") {
		t.Errorf("exit %d, %q", code, rest)
	}
}
