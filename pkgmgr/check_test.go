//go:build unix

package pkgmgr

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWritesBytecode(t *testing.T) {
	for kind, want := range map[string]bool{
		"script, started by /usr/bin/env python3":           true,
		"script, started by /usr/bin/python3.12":            true,
		"script, started by /usr/bin/env -S python3 -B":     false,
		"script, started by /usr/bin/python3 -IB":           false,
		"script, started by /usr/bin/python3 --Bogus":       true,
		"script, started by /usr/bin/env -S BASH=B python3": true,
		"script, started by /bin/sh":                        false,
	} {
		if got := writesBytecode(kind); got != want {
			t.Errorf("%s: %t", kind, got)
		}
	}
}

// A second pin of what was installed from a directory names no source: the first one
// gave it an archive, and the directory is none.
func TestPinOfDirectoryTwice(t *testing.T) {
	w := newWorkspace(t, "")
	here, _, _ := programs()
	here.writeTo(t, w.root+"/src")
	w.install(w.root + "/src")
	w.trust("x")
	for range 2 {
		e, err := w.Pin(w.ctx, w.project(), []Ref{{ID: "x"}})
		must(t, err)
		if e[0].Source != "" {
			t.Errorf("source %q", e[0].Source)
		}
	}
}

// Neither files nor directories of a package may be writable by others: an install
// seals its copy, and the author hears of it before.
func TestCheckOfWhatOthersMayWrite(t *testing.T) {
	s := newSite(t)
	dir := sample{id: "x", version: "1.0.0", files: map[string]string{"LICENSE": "l", "lib/a/b": "b", "out/z": "z"}}.dir(t)
	write(t, filepath.Join(dir, ".switchyardignore"), "out\n", 0o666)
	warned := func() string {
		t.Helper()
		c, err := s.Check(s.ctx, dir)
		must(t, err)
		return strings.Join(c.Warnings, "\n")
	}
	must(t, os.Chmod(filepath.Join(dir, "out"), 0o777)) // left out
	must(t, os.Chmod(filepath.Join(dir, "out/z"), 0o666))
	if w := warned(); w != "" {
		t.Errorf("%q", w)
	}
	for name, mode := range map[string]os.FileMode{
		".": 0o775, "bin": 0o757, "bin/tool": 0o775, "lib": 0o775, "lib/a": 0o777, "lib/a/b": 0o664, "plugin.json": 0o646,
	} {
		path := filepath.Join(dir, name)
		before, err := os.Stat(path)
		must(t, err)
		must(t, os.Chmod(path, mode))
		if w := warned(); !strings.HasPrefix(w, "writable by group or world: "+name+" (0") {
			t.Errorf("%s: %q", name, w)
		}
		must(t, os.Chmod(path, before.Mode()))
	}
	for _, name := range []string{"bin", "lib", "lib/a", "LICENSE"} {
		must(t, os.Chmod(filepath.Join(dir, name), 0o777))
	}
	if w := warned(); !strings.Contains(w, ": LICENSE (0777), bin (0777), lib (0777) and 1 more; ") {
		t.Errorf("%q", w)
	}
	must(t, os.Chmod(filepath.Join(dir, "LICENSE"), 0o644))
	// An archive has no such bits that count.
	c, err := s.Check(s.ctx, sample{id: "x", version: "1.0.0", files: map[string]string{"LICENSE": "l"}}.archive(t))
	must(t, err)
	if len(c.Warnings) != 0 {
		t.Errorf("%q", c.Warnings)
	}
}
