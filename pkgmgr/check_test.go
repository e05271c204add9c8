//go:build unix

package pkgmgr

import "testing"

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
