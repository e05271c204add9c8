package commands

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sandbox is a fake Env on a terminal with an installed plugin.
func sandbox(t *testing.T) *fakeEnv {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a plugin")
	}
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("the test's plugin is a shell script")
	}
	env := newFakeEnv(t)
	env.vars["PATH"] = os.Getenv("PATH")
	src := filepath.Join(t.TempDir(), "src")
	if err := makePlugin(src, "demo", "1.0.0", "good"); err != nil {
		t.Fatal(err)
	}
	env.Args = []string{"install", src}
	if code, _, stderr := env.run(); code != exitOK {
		t.Fatalf("install: exit %d, %s", code, stderr)
	}
	env.terminal, env.width = true, 80
	env.vars["NO_COLOR"] = "1"
	return env
}

func (f *fakeEnv) status(t *testing.T) string {
	t.Helper()
	f.Args = []string{"list"}
	_, stdout, _ := f.run()
	return stdout
}

func TestApproveAsksForEachScope(t *testing.T) {
	env := sandbox(t)
	env.Args = []string{"approve", "demo"}
	env.Stdin = strings.NewReader("perhaps\ny\nYES\nn\n")
	code, stdout, stderr := env.run()
	if code != exitOK {
		t.Fatalf("exit %d\n%s\n%s", code, stdout, stderr)
	}
	for _, want := range []string{"A trusted plugin runs as you", "What it asks for", "Enabled demo 1.0.0", "withheld"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	if n := strings.Count(stderr, "[y/N]"); n != 4 {
		t.Errorf("%d questions, want 4 (one of them twice):\n%s", n, stderr)
	}
	if !strings.Contains(stderr, "Trust exactly this package, sha256:") {
		t.Errorf("the question does not name the digest:\n%s", stderr)
	}
	if s := env.status(t); !strings.Contains(s, "enabled") || strings.Contains(s, "project.operate") {
		t.Errorf("%s", s)
	}
}

func TestApproveTakesNoForAnAnswer(t *testing.T) {
	for _, answers := range []string{"n\n", "\n", "", "perhaps"} {
		env := sandbox(t)
		env.Args = []string{"approve", "demo"}
		env.Stdin = strings.NewReader(answers)
		code, _, stderr := env.run()
		if code != exitDecision || !strings.Contains(stderr, "nothing was changed") {
			t.Errorf("%q: exit %d, %s", answers, code, stderr)
		}
		if s := env.status(t); !strings.Contains(s, "untrusted") {
			t.Errorf("%q: %s", answers, s)
		}
	}
}

func TestApproveNeverAsksWithoutInput(t *testing.T) {
	env := sandbox(t)
	for _, args := range [][]string{{"approve", "demo", "--no-input"}, {"approve", "demo", "--json"}} {
		env.Args = args
		env.Stdin = untouchable{t, args}
		code, stdout, stderr := env.run()
		if code != exitDecision || !strings.Contains(stdout+stderr, "switchyard trust demo --fingerprint sha256:") {
			t.Errorf("%q: exit %d\n%s\n%s", args, code, stdout, stderr)
		}
	}
}

// What was shown is what is trusted: a package that changes between the review
// and the answer is not.
func TestApproveTrustsWhatWasShown(t *testing.T) {
	env := sandbox(t)
	env.Args = []string{"approve", "demo"}
	plugin := filepath.Join(env.vars["HOME"], ".local/share/switchyard/plugins/demo/bin/plugin")
	env.Stdin = readerFunc(func(p []byte) (int, error) {
		if err := os.Chmod(plugin, 0o755); err != nil {
			t.Error(err)
		}
		f, err := os.OpenFile(plugin, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
		} else {
			if _, err := f.WriteString("# changed\n"); err != nil {
				t.Error(err)
			}
			f.Close()
		}
		return copy(p, "y\n"), nil
	})
	code, _, stderr := env.run()
	if code != exitIntegrity || !strings.Contains(stderr, "INTEGRITY FAILURE") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A person who interrupts a question is not held until an answer, and nothing is
// changed.
func TestApproveCanBeInterrupted(t *testing.T) {
	for _, answers := range []string{"", "y\n"} {
		env := sandbox(t)
		ctx, interrupt := context.WithCancel(context.Background())
		env.Interrupts = func(context.Context, chan<- struct{}) (context.Context, func()) { return ctx, interrupt }
		never := make(chan struct{})
		t.Cleanup(func() { close(never) })
		given := strings.NewReader(answers)
		env.Args = []string{"approve", "demo"}
		env.Stdin = readerFunc(func(p []byte) (int, error) {
			if given.Len() > 0 {
				return given.Read(p)
			}
			interrupt()
			<-never
			return 0, io.EOF
		})
		code, _, stderr := env.run()
		if code != exitInterrupted || !strings.Contains(stderr, "interrupted: nothing was changed") {
			t.Errorf("exit %d, %s", code, stderr)
		}
		env.Interrupts = newFakeEnv(t).Interrupts
		if s := env.status(t); !strings.Contains(s, "untrusted") {
			t.Errorf("%s", s)
		}
	}
}
