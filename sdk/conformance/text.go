package conformance

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// variables holds what a case has captured or the runner has made: a name and
// the JSON text it stands for.
type variables map[string]string

var (
	// reference is $name, $name+300ms or ${name}.
	reference = pattern{text: `\$\$|\$\{([a-zA-Z][a-zA-Z0-9.]*)\}|\$([a-z][a-zA-Z0-9]*(?:\.[a-zA-Z0-9]+)*)([+-](?:\d+(?:ms|s|m|h))+)?`}
	// octets is ⟨EF BB BF⟩, ⟨"x"*100⟩ for a text that is repeated, or ⟨members 9⟩ for
	// so many members with different names.
	octets = pattern{text: `⟨([^⟩]*)⟩`}
	repeat = pattern{text: `^("(?:[^"\\]|\\.)*")\*(\d+)$`}
)

// wireTime is the form of timestamps that the runner sends.
const wireTime = "2006-01-02T15:04:05.000000Z"

// expand replaces references and then octets. $name becomes the variable's JSON
// text, ${name} the same without its quotes, $$ a dollar.
func (v variables) expand(text string) (string, error) {
	var failed error
	text = reference.get().ReplaceAllStringFunc(text, func(found string) string {
		if found == "$$" {
			return "$"
		}
		m := reference.get().FindStringSubmatch(found)
		name := m[1] + m[2]
		value, err := v.value(name, m[3])
		if err != nil {
			failed = err
		}
		if m[1] != "" {
			return strings.Trim(value, `"`)
		}
		return value
	})
	if failed != nil {
		return "", failed
	}
	text = octets.get().ReplaceAllStringFunc(text, func(found string) string {
		inner := strings.TrimSuffix(strings.TrimPrefix(found, "⟨"), "⟩")
		out, err := parseOctets(inner)
		if err != nil {
			failed = err
		}
		return out
	})
	return text, failed
}

func (v variables) value(name, offset string) (string, error) {
	switch name {
	case "uuid":
		return strconv.Quote(newUUID()), nil
	case "now":
		at := time.Now().UTC()
		if offset != "" {
			d, err := time.ParseDuration(offset)
			if err != nil {
				return "", err
			}
			at = at.Add(d)
		}
		return strconv.Quote(at.Format(wireTime)), nil
	}
	if offset != "" {
		return "", fmt.Errorf("only $now takes an offset, not $%s", name)
	}
	value, ok := v[name]
	if !ok {
		return "", fmt.Errorf("$%s is not known here", name)
	}
	return value, nil
}

func parseOctets(inner string) (string, error) {
	if m := repeat.get().FindStringSubmatch(inner); m != nil {
		unit, err := strconv.Unquote(m[1])
		if err != nil {
			return "", fmt.Errorf("⟨%s⟩: %w", inner, err)
		}
		n, err := strconv.Atoi(m[2])
		if err != nil || n > 64<<20 {
			return "", fmt.Errorf("⟨%s⟩ is too often", inner)
		}
		return strings.Repeat(unit, n), nil
	}
	if n, ok := strings.CutPrefix(inner, "members "); ok {
		count, err := strconv.Atoi(n)
		if err != nil || count < 1 || count > 1<<20 {
			return "", fmt.Errorf("⟨%s⟩: want a number of members", inner)
		}
		var b strings.Builder
		for i := range count {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `"m%d":0`, i)
		}
		return b.String(), nil
	}
	raw, err := hex.DecodeString(strings.ReplaceAll(inner, " ", ""))
	if err != nil {
		return "", fmt.Errorf("⟨%s⟩ is neither hexadecimal bytes nor \"text\"*N nor members N", inner)
	}
	return string(raw), nil
}

// A member is one member of an object whose text is kept as it will be sent:
// its value need not be JSON.
type member struct{ name, text string }

// members takes an object apart, keeping the order and the text of each value.
func members(text string) ([]member, error) {
	d := json.NewDecoder(strings.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("%.60q is no object", text)
	}
	var list []member
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, err
		}
		list = append(list, member{name.(string), string(raw)})
	}
	return list, nil
}

func object(list []member) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, m := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quote(m.name))
		b.WriteByte(':')
		b.WriteString(m.text)
	}
	b.WriteByte('}')
	return b.String()
}

// quote returns the JSON string of s, with nothing escaped that need not be.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err) // a string can be encoded
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// set changes the member at a dotted path of an object's text. "drop" as the
// text takes it out; a path that ends with "+" appends a member although one of
// that name is there.
func set(list []member, path, text string) ([]member, error) {
	name, rest, nested := strings.Cut(path, ".")
	again := strings.HasSuffix(name, "+")
	name = strings.TrimSuffix(name, "+")
	at := -1
	for i, m := range list {
		if m.name == name {
			at = i
		}
	}
	switch {
	case nested:
		inner := []member{}
		if at >= 0 {
			var err error
			if inner, err = members(list[at].text); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		inner, err := set(inner, rest, text)
		if err != nil {
			return nil, err
		}
		text = object(inner)
	case text == "drop":
		if at < 0 {
			return nil, fmt.Errorf("there is no member %s to drop", name)
		}
		return append(list[:at:at], list[at+1:]...), nil
	}
	if at < 0 || again {
		return append(list, member{name, text}), nil
	}
	list[at].text = text
	return list, nil
}
