package wire

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/internal/strict"
)

// AppendString appends s as a JSON string that the value rules accept: what is
// not UTF-8, and noncharacters, become U+FFFD.
func AppendString[T string | []byte](dst []byte, s T) []byte { return appendQuoted(dst, s) }

func appendQuoted[T string | []byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
			if r == utf8.RuneError && n == 1 || strict.IsNoncharacter(r) {
				dst = append(append(dst, s[start:i]...), "\uFFFD"...)
				start = i + n
			}
			i += n
			continue
		}
		dst = append(append(dst, s[start:i]...), '\\')
		switch c {
		case '"', '\\':
			dst = append(dst, c)
		case '\b':
			dst = append(dst, 'b')
		case '\f':
			dst = append(dst, 'f')
		case '\n':
			dst = append(dst, 'n')
		case '\r':
			dst = append(dst, 'r')
		case '\t':
			dst = append(dst, 't')
		default:
			const digits = "0123456789abcdef"
			dst = append(dst, 'u', '0', '0', digits[c>>4], digits[c&15])
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

// A writer appends the members of one object.
type writer struct {
	out   []byte
	begun bool
}

func begin(dst []byte) writer { return writer{out: append(dst, '{')} }

func (w *writer) end() []byte { return append(w.out, '}') }

// name begins a member; names need no escapes.
func (w *writer) name(name string) {
	if w.begun {
		w.out = append(w.out, ',')
	}
	w.begun = true
	w.out = append(append(append(w.out, '"'), name...), '"', ':')
}

func (w *writer) string(name, value string) {
	w.name(name)
	w.out = appendQuoted(w.out, value)
}

// optional writes a string unless it is empty.
func (w *writer) optional(name, value string) {
	if value != "" {
		w.string(name, value)
	}
}

// orNull writes a string, or null for an empty one.
func (w *writer) orNull(name, value string) {
	if value == "" {
		w.null(name)
		return
	}
	w.string(name, value)
}

func (w *writer) null(name string) {
	w.name(name)
	w.out = append(w.out, "null"...)
}

func (w *writer) uuid(name string, u UUID) {
	w.name(name)
	w.out = Some(u).append(w.out)
}

func (w *writer) nullUUID(name string, u NullUUID) {
	w.name(name)
	w.out = u.append(w.out)
}

func (w *writer) integer(name string, n int64) {
	w.name(name)
	w.out = strconv.AppendInt(w.out, n, 10)
}

func (w *writer) bool(name string, b bool) {
	w.name(name)
	w.out = strconv.AppendBool(w.out, b)
}

func (w *writer) time(name string, t time.Time) {
	w.name(name)
	w.out = append(w.out, '"')
	w.out = append(AppendTime(w.out, t), '"')
}

func (w *writer) version(name string, v Version) {
	w.name(name)
	w.out = append(w.out, '"')
	w.out = append(v.append(w.out), '"')
}

// raw writes JSON as it is; none is null.
func (w *writer) raw(name string, value []byte) {
	if len(value) == 0 {
		w.null(name)
		return
	}
	w.name(name)
	w.out = append(w.out, value...)
}

func stringList[S ~string](w *writer, name string, list []S) {
	w.name(name)
	w.out = append(w.out, '[')
	for i, s := range list {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.out = appendQuoted(w.out, string(s))
	}
	w.out = append(w.out, ']')
}

// list writes an array of objects.
func list[T any](w *writer, name string, items []T, one func(dst []byte, item *T) []byte) {
	w.name(name)
	w.out = append(w.out, '[')
	for i := range items {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.out = one(w.out, &items[i])
	}
	w.out = append(w.out, ']')
}
