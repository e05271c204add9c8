package commands

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"
)

// A fakeEnv is an Env whose streams, terminal and clock a test owns.
type fakeEnv struct {
	Env
	out, err bytes.Buffer
	vars     map[string]string
	terminal bool
	width    int
	now      time.Time
}

func newFakeEnv(t *testing.T, args ...string) *fakeEnv {
	t.Helper()
	home := t.TempDir()
	f := &fakeEnv{
		vars: map[string]string{"HOME": home, "TERM": "xterm"},
		now:  time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC),
	}
	f.Env = Env{
		Program:      "switchyard",
		Args:         args,
		Stdin:        strings.NewReader(""),
		Stdout:       &f.out,
		Stderr:       &f.err,
		LookupEnv:    func(name string) (string, bool) { v, ok := f.vars[name]; return v, ok },
		Getwd:        func() (string, error) { return home, nil },
		Now:          func() time.Time { return f.now },
		Terminal:     func(int) bool { return f.terminal },
		Width:        func() int { return f.width },
		DiscardInput: func() {},
		Interrupts:   func(ctx context.Context, _ chan<- struct{}) (context.Context, func()) { return context.WithCancel(ctx) },
	}
	return f
}

// run performs the command line and returns what came out.
func (f *fakeEnv) run() (code int, stdout, stderr string) {
	f.out.Reset()
	f.err.Reset()
	code = Main(f.Env)
	return code, f.out.String(), f.err.String()
}
