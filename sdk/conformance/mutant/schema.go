package mutant

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A problem is what is wrong with a value: a code and a place, never the value.
type problem struct{ code, path, message string }

func (p *problem) Error() string { return p.path + " " + p.message }

// A schema is a document that was read; a reference is resolved in its $defs.
type schema struct {
	root map[string]any
	p    *program
}

func parse(text []byte) any {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	return v
}

func (s *schema) check(text []byte) *problem { return s.value(s.root, parse(text), "") }

func (s *schema) value(node any, v any, path string) *problem {
	if node == true {
		return nil
	}
	n, ok := node.(map[string]any)
	if !ok {
		return &problem{"schema.mismatch", path, "is not allowed here"}
	}
	if ref, ok := n["$ref"].(string); ok {
		defs, _ := s.root["$defs"].(map[string]any)
		return s.value(defs[strings.TrimPrefix(ref, "#/$defs/")], v, path)
	}
	wrong := func(format string, args ...any) *problem {
		return &problem{"schema.mismatch", path, fmt.Sprintf(format, args...)}
	}
	if t := n["type"]; t != nil && !ofType(t, v) {
		return wrong("has the wrong type")
	}
	if c, ok := n["const"]; ok && text(c) != text(v) {
		return wrong("is not the one value allowed")
	}
	if e, ok := n["enum"].([]any); ok && !s.p.has("takes-unknown-enum") && !slices.ContainsFunc(e, func(x any) bool { return text(x) == text(v) }) {
		return wrong("is none of the values allowed")
	}
	switch v := v.(type) {
	case map[string]any:
		return s.object(n, v, path)
	case []any:
		return s.array(n, v, path)
	case string:
		return s.str(n, v, wrong)
	case json.Number:
		x, _ := new(big.Rat).SetString(string(v))
		if m := limit(n["minimum"]); m != nil && x.Cmp(m) < 0 {
			return wrong("is too small")
		}
		if m := limit(n["maximum"]); m != nil && x.Cmp(m) > 0 && !s.p.has("ignores-maximum") {
			return wrong("is too large")
		}
	}
	return nil
}

func (s *schema) object(n map[string]any, v map[string]any, path string) *problem {
	required, _ := n["required"].([]any)
	for _, r := range required {
		if _, ok := v[r.(string)]; !ok && !s.p.has("ignores-required") {
			return &problem{"schema.mismatch", path, "lacks " + r.(string)}
		}
	}
	if m, ok := size(n["maxProperties"]); ok && len(v) > m {
		return &problem{"schema.mismatch", path, "has too many members"}
	}
	if m, ok := size(n["minProperties"]); ok && len(v) < m {
		return &problem{"schema.mismatch", path, "has too few members"}
	}
	properties, _ := n["properties"].(map[string]any)
	names := make([]string, 0, len(v))
	for name := range v {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if p := n["propertyNames"]; p != nil {
			if problem := s.value(p, name, path); problem != nil {
				return problem
			}
		}
		sub, known := properties[name]
		if !known {
			sub = n["additionalProperties"]
			if sub == false {
				if s.p.has("takes-unknown-members") {
					continue
				}
				return &problem{"schema.unknown_member", path, "has a member that is not known"}
			}
			if sub == nil {
				continue
			}
		}
		at := path
		if known || s.p.has("tells-foreign-names") {
			at += "/" + name
		}
		if p := s.value(sub, v[name], at); p != nil {
			return p
		}
	}
	return nil
}

func (s *schema) array(n map[string]any, v []any, path string) *problem {
	wrong := func(m string) *problem { return &problem{"schema.mismatch", path, m} }
	if m, ok := size(n["minItems"]); ok && len(v) < m {
		return wrong("has too few elements")
	}
	if m, ok := size(n["maxItems"]); ok && len(v) > m {
		return wrong("has too many elements")
	}
	if n["uniqueItems"] == true && !s.p.has("ignores-unique-items") {
		seen := map[string]bool{}
		for _, x := range v {
			if seen[text(x)] {
				return wrong("has equal elements")
			}
			seen[text(x)] = true
		}
	}
	if n["items"] != nil {
		for i, x := range v {
			if p := s.value(n["items"], x, path+"/"+strconv.Itoa(i)); p != nil {
				return p
			}
		}
	}
	return nil
}

func (s *schema) str(n map[string]any, v string, wrong func(string, ...any) *problem) *problem {
	length := utf8.RuneCountInString(v)
	if s.p.has("counts-bytes-as-characters") {
		length = len(v)
	}
	if m, ok := size(n["minLength"]); ok && length < m {
		return wrong("is too short")
	}
	if m, ok := size(n["maxLength"]); ok && length > m {
		return wrong("is too long")
	}
	if p, ok := n["pattern"].(string); ok && !s.p.has("ignores-pattern") && !regexp.MustCompile(p).MatchString(v) {
		return wrong("does not match its pattern")
	}
	if f, ok := n["format"].(string); ok && !s.p.format(f, v) {
		return wrong("is no %s", f)
	}
	return nil
}

var (
	timeForm    = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,6})?Z$`)
	uuidForm    = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	int64Form   = regexp.MustCompile(`^(0|-?[1-9]\d{0,18})$`)
	decimalForm = regexp.MustCompile(`^-?(0|[1-9]\d*)(\.\d+)?$`)
)

func (p *program) format(name, v string) bool {
	switch name {
	case "date-time":
		if p.has("takes-loose-times") {
			_, err := time.Parse(time.RFC3339, strings.ToUpper(v))
			return err == nil
		}
		if !timeForm.MatchString(v) {
			return false
		}
		_, err := time.Parse(time.RFC3339Nano, v)
		return err == nil
	case "int64":
		_, err := strconv.ParseInt(v, 10, 64)
		return int64Form.MatchString(v) && (err == nil || p.has("takes-int64-overflow"))
	case "decimal":
		return decimalForm.MatchString(v)
	case "base64url":
		encoding := base64.RawURLEncoding.Strict()
		if p.has("takes-loose-base64") {
			encoding = base64.RawURLEncoding
		}
		_, err := encoding.DecodeString(v)
		return err == nil && !strings.ContainsAny(v, "\r\n")
	case "uuid":
		return uuidForm.MatchString(v)
	case "uri":
		return strings.Contains(v, ":")
	}
	return true
}

func ofType(want, v any) bool {
	if list, ok := want.([]any); ok {
		return slices.ContainsFunc(list, func(t any) bool { return ofType(t, v) })
	}
	switch v := v.(type) {
	case nil:
		return want == "null"
	case bool:
		return want == "boolean"
	case string:
		return want == "string"
	case []any:
		return want == "array"
	case map[string]any:
		return want == "object"
	case json.Number:
		x, ok := new(big.Rat).SetString(string(v))
		return ok && (want == "number" || want == "integer" && x.IsInt())
	}
	return false
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	return string(b)
}

func limit(v any) *big.Rat {
	n, ok := v.(json.Number)
	if !ok {
		return nil
	}
	x, _ := new(big.Rat).SetString(string(n))
	return x
}

func size(v any) (int, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := strconv.Atoi(string(n))
	return i, err == nil
}
