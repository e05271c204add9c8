package revlist

import (
	"strconv"
	"time"

	"github.com/switchyard-plugins/switchyard/verify"
)

// The append functions write RFC 8785: members in the order of their names, no
// white space, the shortest escapes. What they are given has been checked.

func appendEntry(b []byte, e Entry) []byte {
	b = append(b, `{"action":`...)
	b = appendString(b, string(e.Action))
	b = appendMember(b, "advisory", e.Advisory)
	b = appendMember(b, "digest", string(e.Digest))
	b = appendMember(b, "kind", string(e.Kind))
	b = appendMember(b, "pluginId", e.PluginID)
	b = appendMember(b, "publisherId", e.PublisherID)
	b = appendMember(b, "range", e.Range)
	b = appendMember(b, "reason", string(e.Reason))
	b = appendMember(b, "replacement", e.Replacement)
	if (e.Signer != verify.Signer{}) {
		b = append(b, `,"signer":`...)
		b = appendSigner(b, e.Signer)
	}
	b = appendMember(b, "text", e.Text)
	return append(b, '}')
}

// appendMember appends a member that is not its object's first, unless it is empty.
func appendMember(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	b = append(b, ',', '"')
	b = append(b, name...)
	b = append(b, '"', ':')
	return appendString(b, value)
}

func appendSigner(b []byte, s verify.Signer) []byte {
	if s.Key != "" {
		b = append(b, `{"key":`...)
		return append(appendString(b, s.Key), '}')
	}
	b = append(b, `{"identity":`...)
	b = appendString(b, s.Identity)
	b = append(b, `,"issuer":`...)
	return append(appendString(b, s.Issuer), '}')
}

func appendSigners(b []byte, name string, list []verify.Signer) []byte {
	b = append(b, ',', '"')
	b = append(b, name...)
	b = append(b, `":[`...)
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendSigner(b, s)
	}
	return append(b, ']')
}

func appendInteger(b []byte, name string, n uint64) []byte {
	b = append(b, ',', '"')
	b = append(b, name...)
	b = append(b, '"', ':')
	return strconv.AppendUint(b, n, 10)
}

func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\b':
			b = append(b, `\b`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\f':
			b = append(b, `\f`...)
		case c == '\r':
			b = append(b, `\r`...)
		case c < 0x20:
			b = append(b, `\u00`...)
			b = append(b, "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// timeLayout is the only spelling of a time: UTC, whole seconds.
const timeLayout = "2006-01-02T15:04:05Z"

func appendTime(b []byte, t time.Time) []byte {
	return t.UTC().AppendFormat(b, timeLayout)
}

func checkTime(member string, t time.Time) *problem {
	if t.IsZero() || t.Nanosecond() != 0 || t.UTC().Year() < 1 || t.UTC().Year() > 9999 {
		return broken("%s is not a time in whole seconds", member)
	}
	return nil
}

// time reads a time.
func (s *scanner) time(member string) time.Time {
	at := s.offset()
	if !s.str(len(timeLayout), member) {
		return time.Time{}
	}
	t, err := time.Parse(timeLayout, string(s.text))
	if err != nil || t.Format(timeLayout) != string(s.text) {
		s.failAt(at, badValue, "%s is not a time such as 2030-12-31T23:59:59Z", member)
		return time.Time{}
	}
	return t
}
