package conformance

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// JUnit returns the results as the XML that CI systems read: a testsuite for each
// group.
func JUnit(results []Result) []byte {
	var b strings.Builder
	b.WriteString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n")
	for len(results) > 0 {
		group := results[0].Case.Group
		n, failed, seconds := 0, 0, 0.0
		for n < len(results) && results[n].Case.Group == group {
			if results[n].Failure != nil {
				failed++
			}
			seconds += results[n].Duration.Seconds()
			n++
		}
		fmt.Fprintf(&b, "  <testsuite name=\"%s\" tests=\"%d\" failures=\"%d\" time=\"%.3f\">\n", escape(group), n, failed, seconds)
		for _, r := range results[:n] {
			fmt.Fprintf(&b, "    <testcase classname=\"%s\" name=\"%s\" time=\"%.3f\">", escape(group), escape(r.Case.Name), r.Duration.Seconds())
			if f := r.Failure; f != nil {
				fmt.Fprintf(&b, "\n      <failure message=\"%s\">%s</failure>\n    ", escape(f.Summary()), escape(f.Text(r.Case)))
			}
			b.WriteString("</testcase>\n")
		}
		b.WriteString("  </testsuite>\n")
		results = results[n:]
	}
	b.WriteString("</testsuites>\n")
	return []byte(b.String())
}

// Summary says in a line what was wrong.
func (f *Failure) Summary() string {
	if f.Fault != "" {
		return f.Fault
	}
	return "expected " + f.Expected + "; received " + f.Received
}

// Text tells of the failure with its rule, its step and the last frames.
func (f *Failure) Text(c *Case) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nrules %s (%s)\nline %d: %s\n%s\n", c.Title, strings.Join(c.Rules, " "), c.Source, f.Line, f.Step, f.Summary())
	for _, t := range f.Trace {
		b.WriteString(t + "\n")
	}
	if f.Stderr != "" {
		b.WriteString("standard error:\n" + f.Stderr + "\n")
	}
	return b.String()
}

// escape writes text for XML 1.0, which has no way to say most control
// characters; they become U+FFFD.
func escape(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '&':
			b.WriteString("&amp;")
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '"':
			b.WriteString("&quot;")
		case r == '\n':
			b.WriteString("&#10;")
		case r == '\t':
			b.WriteString("&#9;")
		case r < ' ' || r == 0xFFFE || r == 0xFFFF:
			b.WriteRune(utf8.RuneError)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
