package lockfile

import (
	"bytes"
	"strconv"
)

// header is the first line of every lock that Format writes.
const header = "# Written by switchyard and reviewed by people: change it with \"switchyard lock\", \"pin\" or \"unpin\".\n"

// Format returns the lock's canonical text: the same meaning gives the same
// bytes, whatever the order in which f came about. A nil lock is an empty one.
//
// The layout makes a merge line by line, by a git that does not know the merge
// driver, collide where it should: lists stand on one line, and the grants next
// to the version that they were reviewed for.
func (f *File) Format() []byte {
	f = f.canonical()
	b := make([]byte, 0, 512+1024*len(f.Plugins))
	b = appendHead(b)
	for _, p := range f.Plugins {
		b = append(b, '\n')
		b = p.append(b)
	}
	return appendFloors(b, f.Revocations)
}

func appendHead(b []byte) []byte {
	b = append(b, header...)
	b = append(b, "lockVersion = "...)
	b = strconv.AppendInt(b, Version, 10)
	return append(b, '\n')
}

func appendFloors(b []byte, floors []Floor) []byte {
	for _, floor := range floors {
		b = append(b, "\n[[revocations]]\n"...)
		b = appendText(b, "issuer", floor.Issuer)
		b = append(b, "version = "...)
		b = strconv.AppendInt(b, floor.Version, 10)
		b = append(b, '\n')
	}
	return b
}

func (p Plugin) append(b []byte) []byte {
	b = append(b, "[[plugin]]\n"...)
	b = appendText(b, "id", p.ID)
	b = appendText(b, "source", p.Source)
	b = appendText(b, "version", p.Version)
	b = appendTexts(b, "grants", p.Grants)
	if s := p.Signer; s != nil {
		b = append(b, "\n[plugin.signer]\n"...)
		for _, m := range []struct{ name, value string }{
			{"identity", s.Identity}, {"issuer", s.Issuer}, {"key", s.Key},
		} {
			if m.value != "" {
				b = appendText(b, m.name, m.value)
			}
		}
	}
	for _, key := range p.keys() {
		e := p.Platforms[key]
		b = append(b, "\n[plugin.platform."...)
		b = appendQuoted(b, key)
		b = append(b, "]\n"...)
		b = appendText(b, "archive", string(e.Archive))
		b = appendText(b, "package", string(e.Package))
		b = appendText(b, "manifest", string(e.Manifest))
		b = appendText(b, "fingerprint", string(e.Fingerprint))
		if len(e.Evidence) > 0 {
			b = appendTexts(b, "evidence", e.Evidence)
		}
	}
	return b
}

func appendText(b []byte, name, value string) []byte {
	b = append(b, name...)
	b = append(b, " = "...)
	b = appendQuoted(b, value)
	return append(b, '\n')
}

func appendTexts(b []byte, name string, values []string) []byte {
	b = append(b, name...)
	b = append(b, " = ["...)
	for i, v := range values {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = appendQuoted(b, v)
	}
	return append(b, "]\n"...)
}

// appendQuoted writes a basic TOML string. Control characters, which no valid
// lock holds, are written as they are; Write refuses the result.
func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			b = append(b, '\\')
		}
		b = append(b, s[i])
	}
	return append(b, '"')
}

// FirstDifference returns the first line, from 1, in which text differs from f's
// canonical form, and 0 when there is none. CRLF counts as LF.
func (f *File) FirstDifference(text []byte) int {
	want, got := bytes.Split(f.Format(), []byte("\n")), bytes.Split(lf(text), []byte("\n"))
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || !bytes.Equal(want[i], got[i]) {
			return i + 1
		}
	}
	return 0
}

// lf returns text with LF line ends.
func lf(text []byte) []byte { return bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")) }
