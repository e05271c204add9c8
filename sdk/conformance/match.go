package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// A matcher is what a line below an expectation says of one member.
type matcher struct {
	kind string // one of matcherKinds, or "equal"
	text string
}

// matcherKinds lists the words that begin a matcher; anything else is a JSON
// value that the member must equal.
var matcherKinds = lazy[map[string]bool]{make: func() map[string]bool {
	return map[string]bool{ // value: takes an argument
		"absent": false, "present": false, "uuid": false, "time": false, "string": false, "digest": false, "object": false,
		"not": true, "any-of": true, "match": true, "above": true, "below": true, "length": true, "->": true, "sha256": true, "sha256-jcs": true, "same-set": true,
		"contains": true, "about": true,
	}
}}

func parseMatcher(text string) (matcher, error) {
	word, rest, _ := strings.Cut(text, " ")
	rest = strings.TrimSpace(rest)
	takes, known := matcherKinds.get()[word]
	switch {
	case !known && text == "":
		return matcher{}, errors.New("what must it be?")
	case !known:
		return matcher{"equal", text}, nil
	case takes != (rest != ""):
		return matcher{}, fmt.Errorf("%q: wrong number of arguments", word)
	}
	if word == "match" {
		if _, err := regexp.Compile(rest); err != nil {
			return matcher{}, err
		}
	}
	return matcher{word, rest}, nil
}

var (
	uuidForm   = pattern{text: `^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`}
	digestForm = pattern{text: `^sha256:[0-9a-f]{64}$`}
	traceForm  = pattern{text: `^[0-9a-f]{32}$`}
	timeForm   = pattern{text: `^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,6})?Z$`}
)

func isTime(s string) bool {
	if !timeForm.get().MatchString(s) {
		return false
	}
	_, err := time.Parse(time.RFC3339Nano, s)
	return err == nil
}

// A mismatch is what a matcher wanted and what was there.
type mismatch struct{ expected, received string }

func (m *mismatch) Error() string { return "expected " + m.expected + ", received " + m.received }

// apply holds a value (nil: the member is absent) to the matcher.
func (m matcher) apply(v variables, path string, value json.RawMessage) error {
	received := path + " absent"
	if value != nil {
		received = path + " " + string(value)
	}
	wrong := func(expected string) error { return &mismatch{path + " " + expected, received} }
	if m.kind == "absent" {
		if value != nil {
			return wrong("absent")
		}
		return nil
	}
	if value == nil {
		return wrong(strings.TrimSpace(m.kind + " " + m.text))
	}
	text, err := v.expand(m.text)
	if err != nil {
		return err
	}
	isString := value[0] == '"'
	var s string
	if isString {
		if err := json.Unmarshal(value, &s); err != nil {
			return wrong("a string")
		}
	}
	ok := false
	switch m.kind {
	case "present":
		ok = true
	case "string":
		ok = isString
	case "uuid":
		ok = uuidForm.get().MatchString(s)
	case "time":
		ok = isTime(s)
	case "digest":
		ok = digestForm.get().MatchString(s)
	case "object":
		ok = value[0] == '{'
	case "match":
		ok = isString && regexp.MustCompile(m.text).MatchString(s)
	case "about":
		ok, err = about(s, strings.Trim(text, `"`))
	case "contains":
		ok = isString && strings.Contains(s, strings.Trim(text, `"`))
	case "->":
		v[m.text] = string(value)
		ok = true
	case "above", "below":
		ok, err = order(value, text, m.kind)
	case "length":
		var list []json.RawMessage
		ok = json.Unmarshal(value, &list) == nil && strconv.Itoa(len(list)) == text
	case "any-of":
		var choices []json.RawMessage
		if err = json.Unmarshal([]byte(text), &choices); err == nil {
			for _, c := range choices {
				same, _ := equal(c, value)
				ok = ok || same
			}
		}
	case "same-set":
		ok, err = sameSet([]byte(text), value)
	case "sha256": // of the text as it stands
		text = string(digest.Of([]byte(text)))
		ok = s == text
	case "sha256-jcs":
		var canonical []byte
		if canonical, err = digest.Canonical([]byte(text)); err == nil {
			text = string(digest.Of(canonical))
			ok = s == text
		}
	case "not":
		ok, err = equal([]byte(text), value)
		ok = !ok
	default:
		ok, err = equal([]byte(text), value)
	}
	if err != nil {
		return fmt.Errorf("%s: the case's own value: %w", path, err)
	}
	if !ok {
		if m.kind != "equal" {
			text = m.kind + " " + text
		}
		return wrong(text)
	}
	return nil
}

// about reports whether two timestamps are within five minutes of each other.
func about(got, want string) (bool, error) {
	w, err := time.Parse(time.RFC3339Nano, want)
	if err != nil {
		return false, err
	}
	g, err := time.Parse(time.RFC3339Nano, got)
	return err == nil && g.Sub(w).Abs() < 5*time.Minute, nil
}

func order(value json.RawMessage, text, kind string) (bool, error) {
	got, okGot := new(big.Float).SetString(string(value))
	want, okWant := new(big.Float).SetString(text)
	if !okWant {
		return false, fmt.Errorf("%q is no number", text)
	}
	return okGot && (kind == "above") == (got.Cmp(want) > 0) && got.Cmp(want) != 0, nil
}

func sameSet(want, got []byte) (bool, error) {
	var a, b []json.RawMessage
	if err := json.Unmarshal(want, &a); err != nil {
		return false, err
	}
	if json.Unmarshal(got, &b) != nil || len(a) != len(b) {
		return false, nil
	}
	for _, x := range a {
		found := false
		for _, y := range b {
			same, err := equal(x, y)
			if err != nil {
				return false, err
			}
			found = found || same
		}
		if !found {
			return false, nil
		}
	}
	return true, nil
}

// equal compares two JSON texts by value: order of members and spelling of
// numbers mean nothing. An error is one of want.
func equal(want, got []byte) (bool, error) {
	a, err := decode(want)
	if err != nil {
		return false, fmt.Errorf("%.80s: %w", want, err)
	}
	b, err := decode(got)
	return err == nil && same(a, b), nil
}

func decode(text []byte) (any, error) {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return v, nil
}

func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name, x := range a {
			y, ok := b[name]
			if !ok || !same(x, y) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !same(a[i], b[i]) {
				return false
			}
		}
		return true
	case json.Number:
		b, ok := b.(json.Number)
		if !ok {
			return false
		}
		x, okX := new(big.Rat).SetString(string(a))
		y, okY := new(big.Rat).SetString(string(b))
		return okX && okY && x.Cmp(y) == 0
	}
	return a == b
}

// at returns the member at a dotted path, or nil. A step of digits is an index.
func at(value json.RawMessage, path string) json.RawMessage {
	if path == "" {
		return value
	}
	name, rest, _ := strings.Cut(path, ".")
	if i, err := strconv.Atoi(name); err == nil {
		var list []json.RawMessage
		if json.Unmarshal(value, &list) != nil || i < 0 || i >= len(list) {
			return nil
		}
		return at(list[i], rest)
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(value, &fields) != nil {
		return nil
	}
	inner, ok := fields[strings.ReplaceAll(name, "~", ".")]
	if !ok {
		return nil
	}
	return at(inner, rest)
}
