package process

import (
	"strings"
	"testing"
)

// FuzzScript feeds any bytes to the reader of "#!" lines: what it accepts names one
// absolute path, which stands in the line between spaces and tabs.
func FuzzScript(f *testing.F) {
	seeds := []string{"", "#!", "#!/bin/sh\n", "#! \t/bin/sh -e \nx", "#!/bin/sh\r\n", "#!sh\n", "\ufeff#!/bin/sh\n", "#!/a\x00b\n", "#!/" + strings.Repeat("x", 300)}
	if len(seeds) == 0 {
		f.Fatal("no seeds")
	}
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		head := data[:min(len(data), scriptHead)]
		s, err := parseScript(head)
		if s == nil || err != nil {
			if s != nil {
				t.Fatalf("%+v and %v", s, err)
			}
			return
		}
		line, _, _ := strings.Cut(string(head), "\n")
		before, after, found := strings.Cut(line, s.interpreter)
		if !found || !strings.HasPrefix(s.interpreter, "/") || strings.ContainsAny(s.interpreter, " \t\r\n\x00") ||
			strings.Trim(before, " \t") != "#!" || after != "" && !strings.ContainsAny(after[:1], " \t") {
			t.Fatalf("%q names %q", line, s.interpreter)
		}
	})
}
