package commands

import (
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/commands/render"
)

func barEnv(t *testing.T) (*fakeEnv, *invocation) {
	env := newFakeEnv(t)
	env.terminal, env.width = true, 80
	return env, newInvocation(env.Env)
}

func TestBarAppearsOnlyForLongWork(t *testing.T) {
	env, in := barEnv(t)
	b := in.newBar()
	b.enter("extracting \x1b[2Jx")
	b.advance(1, 10)
	if env.err.Len() > 0 {
		t.Errorf("drawn at once: %q", env.err.String())
	}
	env.now = env.now.Add(patience)
	b.advance(5, 10)
	shown := env.err.String()
	if !strings.Contains(shown, "50%") || !strings.Contains(shown, `\u001b[2Jx`) {
		t.Errorf("after %v: %q", patience, shown)
	}
	line := strings.TrimPrefix(shown, "\r\x1b[K")
	if n := render.Width(line); n >= 80 {
		t.Errorf("the line takes %d cells of 80", n)
	}
	env.err.Reset()
	b.advance(6, 10)
	if env.err.Len() > 0 {
		t.Errorf("drawn again after no time: %q", env.err.String())
	}
	b.end()
	if env.err.String() != "\r\x1b[K" {
		t.Errorf("not taken off the screen: %q", env.err.String())
	}
	env.err.Reset()
	env.now = env.now.Add(time.Hour)
	b.advance(7, 10)
	b.tick()
	if env.err.Len() > 0 {
		t.Errorf("drawn after the end: %q", env.err.String())
	}
}

// Work that says nothing more still shows that it goes on: the bar appears after
// patience and moves with the time, also once everything measured is done.
func TestBarMovesByItself(t *testing.T) {
	for name, begin := range map[string]func(*bar){
		"a stage alone":    func(b *bar) { b.enter("installing") },
		"all bytes copied": func(b *bar) { b.enter("copying"); b.advance(10, 10) },
	} {
		env, in := barEnv(t)
		b := in.newBar()
		begin(b)
		if env.err.Len() > 0 {
			t.Errorf("%s: drawn at once: %q", name, env.err.String())
		}
		last := ""
		env.now = env.now.Add(patience)
		for range 50 {
			env.err.Reset()
			b.tick()
			line, drawn := strings.CutPrefix(env.err.String(), "\r\x1b[K")
			if !drawn || line == last || !strings.Contains(line, "[") || !strings.Contains(line, "=== ") && !strings.Contains(line, "===]") || render.Width(line) >= 80 {
				t.Fatalf("%s: %q after %q", name, env.err.String(), last)
			}
			last = line
			env.now = env.now.Add(redrawAfter)
		}
		env.err.Reset()
		b.rest()
		b.tick()
		if env.err.String() != "\r\x1b[K" {
			t.Errorf("%s: a resting bar shows %q", name, env.err.String())
		}
		env.err.Reset()
		b.advance(1, 4)
		if !strings.Contains(env.err.String(), "25%") {
			t.Errorf("%s: work after a rest shows %q", name, env.err.String())
		}
		b.end()
	}
}

func TestBarIsTakenAwayForText(t *testing.T) {
	env, in := barEnv(t)
	in.bar = in.newBar()
	in.bar.enter("reading")
	env.now = env.now.Add(patience)
	in.bar.advance(1<<20, 0)
	if !strings.Contains(env.err.String(), "1.0 MB") {
		t.Errorf("no size where the total is unknown: %q", env.err.String())
	}
	env.err.Reset()
	in.note("a line")
	if got := env.err.String(); got != "\r\x1b[Ka line\n" {
		t.Errorf("%q", got)
	}
	in.bar.end()
}

func TestNoBar(t *testing.T) {
	for name, change := range map[string]func(*fakeEnv, *invocation){
		"no terminal": func(f *fakeEnv, _ *invocation) { f.terminal = false },
		"--json":      func(_ *fakeEnv, in *invocation) { in.globals.json = true },
		"--quiet":     func(_ *fakeEnv, in *invocation) { in.globals.quiet = true },
	} {
		env, in := barEnv(t)
		change(env, in)
		if in.newBar() != nil {
			t.Errorf("%s: a bar", name)
		}
	}
	var none *bar
	none.end() // does nothing
}

func TestByteSize(t *testing.T) {
	for _, c := range []struct {
		n    int64
		want string
	}{{0, "0 B"}, {999, "999 B"}, {1000, "1.0 kB"}, {1500, "1.5 kB"}, {9949, "9.9 kB"}, {20_000_000, "20 MB"}, {999_600, "1.0 MB"}, {5 << 40, "5.5 TB"}} {
		if got := byteSize(c.n); got != c.want {
			t.Errorf("byteSize(%d) = %q, want %q", c.n, got, c.want)
		}
	}
}
