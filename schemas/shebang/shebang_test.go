package shebang

import (
	"errors"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		head        string
		interpreter string
		err         error
	}{
		{"#!/bin/sh\n", "/bin/sh", nil},
		{"#! \t/usr/bin/env python3 \nrest", "/usr/bin/env", nil},
		{"#!/bin/sh", "/bin/sh", nil},
		{"#!/bin/sh" + strings.Repeat(" ", Head-12) + "\n", "/bin/sh", nil},
		{"#!/bin/sh" + strings.Repeat(" ", Head), "", ErrLong},
		{"#!/bin/sh\r\n", "", ErrCarriageReturn},
		{"#!\r\n", "", ErrCarriageReturn},
		{"#!", "", ErrNoInterpreter},
		{"#! \t\n", "", ErrNoInterpreter},
		{"#!sh\n", "", ErrRelative},
		{"#!/bin/sh\x00-e\n", "", ErrControl},
		{"\ufeff#!/bin/sh\n", "", ErrMark},
	} {
		head := tc.head[:min(len(tc.head), Head)]
		line, ok, err := Parse([]byte(head))
		if !ok || line.Interpreter != tc.interpreter || !errors.Is(err, tc.err) {
			t.Errorf("%q: %+v, %t, %v; want %q, %v", head, line, ok, err, tc.interpreter, tc.err)
		}
	}
	for _, head := range []string{"", "#", "# !/bin/sh\n", "\x7fELF", "print 1\n"} {
		if line, ok, err := Parse([]byte(head)); ok || err != nil || line != (Line{}) {
			t.Errorf("%q is taken for a script: %+v, %v", head, line, err)
		}
	}
}

// FuzzParse holds that what is accepted names one absolute path, which stands in the
// line between spaces and tabs.
func FuzzParse(f *testing.F) {
	seeds := []string{"", "#!", "#!/bin/sh\n", "#! \t/bin/sh -e \nx", "#!/bin/sh\r\n", "#!sh\n", "\ufeff#!/bin/sh\n", "#!/a\x00b\n", "#!/" + strings.Repeat("x", 300)}
	if len(seeds) < 9 {
		f.Fatalf("only %d seeds", len(seeds))
	}
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		head := data[:min(len(data), Head)]
		s, ok, err := Parse(head)
		if !ok || err != nil {
			if s != (Line{}) {
				t.Fatalf("%+v and %v", s, err)
			}
			return
		}
		line, _, _ := strings.Cut(string(head), "\n")
		before, after, found := strings.Cut(line, s.Interpreter)
		if !found || !strings.HasPrefix(s.Interpreter, "/") || strings.ContainsAny(s.Interpreter, " \t\r\n\x00") ||
			strings.Trim(before, " \t") != "#!" || after != "" && !strings.ContainsAny(after[:1], " \t") {
			t.Fatalf("%q names %q", line, s.Interpreter)
		}
	})
}
