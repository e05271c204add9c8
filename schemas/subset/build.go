package subset

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/switchyard-plugins/switchyard/schemas/format"
)

// A place says what a subschema is applied to.
type place int

const (
	ofValue place = iota // a value of its own: the root, a property, an item, an entry of $defs
	inPlace              // the value that the schema around it meets as well
)

// A builder compiles one document and collects what is wrong with it.
type builder struct {
	problems  []Problem
	nodes     map[string]*node  // by pointer
	resources map[string]string // pointer by $id
	refs      []reference
	count     int
	patterns  int
	positions int
}

type reference struct {
	at, base, target string // the pointer of the schema, of its resource; the $ref
	from             *node
}

func (b *builder) add(at, code, format string, args ...any) {
	if len(b.problems) == MaxFaults {
		return
	}
	b.problems = append(b.problems, Problem{Pointer: at, Code: code, Message: fmt.Sprintf(format, args...)})
}

func build(document []byte) (*Schema, []Problem) {
	s := &Schema{}
	b := &builder{nodes: map[string]*node{}, resources: map[string]string{}}
	if len(document) > MaxDocument {
		b.add("", CodeLimit, "has %d bytes, at most %d", len(document), MaxDocument)
		return s, b.problems
	}
	root := parse(document)
	if root == nil {
		b.add("", CodeJSON, "is not one JSON object with at most %d levels and every name once", MaxDepth)
		return s, b.problems
	}
	if v := root.member("$schema"); v == nil || v.text != Dialect {
		b.add("/$schema", CodeIdentity, "must be %q", Dialect)
	}
	if v := root.member("$id"); v == nil {
		b.add("/$id", CodeIdentity, "is required: a manifest refers to the schema by it")
	} else {
		s.id = v.text
	}
	s.root = b.schema(root, "", "", ofValue, 0)
	b.link()
	if b.problems == nil {
		b.defaults()
	}
	if b.problems != nil {
		return s, b.problems
	}
	return s, nil
}

// schema compiles the subschema v at a pointer; base is the pointer of its resource.
func (b *builder) schema(v *value, at, base string, in place, depth int) *node {
	n := &node{pointer: at, maxLength: -1, maxItems: -1, maxMembers: -1}
	if b.count++; b.count == MaxSubschemas+1 {
		b.add(at, CodeLimit, "more than %d subschemas", MaxSubschemas)
	}
	if depth > MaxNesting {
		b.add(at, CodeLimit, "more than %d subschemas inside each other", MaxNesting)
		return n
	}
	if b.count > MaxSubschemas {
		return n
	}
	b.nodes[at] = n
	switch v.kind {
	case 't':
		return n
	case 'f':
		n.never = true
		return n
	case '{':
	default:
		b.add(at, CodeValue, "a schema is an object, true or false")
		return n
	}
	if id := v.member("$id"); id != nil {
		base = at
		b.identity(id, at)
	}
	s := subschema{builder: b, node: n, value: v, at: at, base: base, depth: depth, part: in}
	if v.member("type") != nil || v.member("$ref") != nil {
		s.part = inPlace // the value's type is known
	}
	for _, m := range v.members {
		s.keyword(m.name, m.value)
	}
	s.together(in)
	return n
}

func (b *builder) identity(id *value, at string) {
	if at != "" && (strings.Count(at, "/") != 2 || !strings.HasPrefix(at, "/$defs/")) {
		b.add(at+"/$id", CodeIdentity, "only the root and the entries of its $defs have an $id")
		return
	}
	if !format.URI(id.text) || strings.Contains(id.text, "#") || len(id.text) > MaxURI {
		b.add(at+"/$id", CodeIdentity, "must be a URI with a scheme and without fragment, of at most %d bytes", MaxURI)
		return
	}
	if _, twice := b.resources[id.text]; twice {
		b.add(at+"/$id", CodeIdentity, "occurs twice")
	}
	b.resources[id.text] = at
}

// A subschema is one that is being compiled.
type subschema struct {
	*builder
	node  *node
	value *value
	at    string
	base  string
	depth int
	part  place // of the subschemas that meet the same value
}

// pointerTo makes the pointer of a name below the subschema.
func (s *subschema) pointerTo(names ...string) string {
	at := s.at
	for _, n := range names {
		at += "/" + escapeToken(n)
	}
	return at
}

func escapeToken(name string) string {
	if strings.ContainsAny(name, "~/") {
		name = strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
	}
	return name
}

func (s *subschema) wrong(keyword, format string, args ...any) {
	s.add(s.pointerTo(keyword), CodeValue, format, args...)
}

// sub compiles what stands at the names below the subschema.
func (s *subschema) sub(v *value, in place, names ...string) *node {
	return s.schema(v, s.pointerTo(names...), s.base, in, s.depth+1)
}

func (s *subschema) keyword(name string, v *value) {
	n := s.node
	switch name {
	case "$schema":
		if v.text != Dialect {
			if s.at != "" { // the root's is required, and judged there
				s.add(s.pointerTo(name), CodeIdentity, "must be %q", Dialect)
			}
		} else if s.base != s.at {
			s.add(s.pointerTo(name), CodeIdentity, "stands only beside an $id")
		}
	case "$id": // judged before
	case "$ref":
		if v.kind != '"' || len(v.text) > MaxURI {
			s.wrong(name, "must be a string of at most %d bytes", MaxURI)
			return
		}
		if s.refs = append(s.refs, reference{s.at, s.base, v.text, n}); len(s.refs) == MaxRefs+1 {
			s.add(s.pointerTo(name), CodeLimit, "more than %d references", MaxRefs)
		}
	case "$defs":
		if s.at != s.base {
			s.add(s.pointerTo(name), CodeKeyword, "only the root and what has an $id have $defs")
			return
		}
		s.each(name, v, func(key string, inner *value) {
			if !isDefinition(key) {
				s.add(s.pointerTo(name, key), CodeValue, "the name must match ^[A-Za-z][A-Za-z0-9_.-]{0,63}$")
				return
			}
			s.sub(inner, ofValue, name, key)
		})
	case "title", "description", "$comment":
		if v.kind != '"' || len(v.text) > MaxAnnotation {
			s.wrong(name, "must be a string of at most %d bytes", MaxAnnotation)
		}
	case "deprecated", "readOnly", "writeOnly":
		if v.kind != 't' && v.kind != 'f' {
			s.wrong(name, "must be true or false")
		}
	case "default":
		n.initial = v.raw
	case "examples":
		if v.kind != '[' {
			s.wrong(name, "must be an array")
		}
	case "type":
		s.types(v)
	case "enum":
		if v.kind != '[' || len(v.items) == 0 {
			s.wrong(name, "must be an array of at least one value")
			return
		}
		if len(v.items) > MaxEnum {
			s.add(s.pointerTo(name), CodeLimit, "has %d values, at most %d", len(v.items), MaxEnum)
			return
		}
		s.enum(name, v.items)
	case "const":
		s.enum(name, []*value{v})
	case "minimum":
		n.minimum = s.number(name, v)
	case "maximum":
		n.maximum = s.number(name, v)
	case "exclusiveMinimum":
		n.above = s.number(name, v)
	case "exclusiveMaximum":
		n.below = s.number(name, v)
	case "multipleOf":
		n.number = true
		n.multipleOf = float64(s.integer(name, v, 1))
	case "minLength":
		n.text, n.minLength = true, s.integer(name, v, 0)
	case "maxLength":
		n.text, n.maxLength = true, s.integer(name, v, 0)
	case "pattern":
		s.pattern(name, v)
	case "format":
		if n.formed = formed(v.text); n.formed == nil {
			s.wrong(name, "must be one of base64url, date-time, decimal, int64, uri and uuid")
			return
		}
		n.text, n.format = true, v.text
	case "items":
		n.array, n.items = true, s.sub(v, ofValue, name)
	case "minItems":
		n.array, n.minItems = true, s.integer(name, v, 0)
	case "maxItems":
		n.array, n.maxItems = true, s.integer(name, v, 0)
	case "uniqueItems":
		if v.kind != 't' && v.kind != 'f' {
			s.wrong(name, "must be true or false")
		}
		n.array, n.unique = true, v.kind == 't'
	case "prefixItems":
		n.array, n.prefix = true, s.branches(name, v, ofValue)
	case "properties":
		n.object = true
		s.each(name, v, func(key string, inner *value) {
			i := s.name(key)
			n.properties[i] = s.sub(inner, ofValue, name, key)
		})
	case "required":
		n.object, n.required = true, s.nameList(v, name)
	case "dependentRequired":
		n.object = true
		s.each(name, v, func(key string, inner *value) {
			i, list := s.name(key), s.nameList(inner, name, key)
			for len(n.dependent) <= i {
				n.dependent = append(n.dependent, nil)
			}
			n.dependent[i] = list
		})
	case "additionalProperties":
		n.object, n.additional = true, s.sub(v, ofValue, name)
	case "propertyNames":
		n.object, n.nameSchema = true, s.sub(v, inPlace, name)
	case "minProperties":
		n.object, n.minMembers = true, s.integer(name, v, 0)
	case "maxProperties":
		n.object, n.maxMembers = true, s.integer(name, v, 0)
	case "allOf":
		n.allOf = append(n.allOf, s.branches(name, v, s.part)...)
	case "anyOf":
		n.anyOf = s.branches(name, v, s.part)
	case "oneOf":
		n.oneOf = s.branches(name, v, s.part)
	case "not":
		n.not = s.sub(v, s.part, name)
	case "if":
		n.ifNode = s.sub(v, s.part, name)
	case "then":
		n.thenN = s.sub(v, s.part, name)
	case "else":
		n.elseN = s.sub(v, s.part, name)
	default:
		if strings.HasPrefix(name, "x-") {
			s.annotation(name, v)
			return
		}
		s.add(s.pointerTo(name), CodeKeyword, "is not a keyword of the subset")
	}
}

// together checks what keywords ask of each other.
func (s *subschema) together(in place) {
	n, has := s.node, func(name string) bool { return s.value.member(name) != nil }
	properties, additional := s.value.member("properties"), s.value.member("additionalProperties")
	closed := additional != nil && additional.kind == 'f'
	switch {
	case n.types&isObject != 0 && additional == nil:
		s.add(s.at, CodeOpen, `an object has "additionalProperties": false, or a schema for its members if it is a map`)
	case in == ofValue && n.types == 0 && n.object && !has("$ref"):
		s.add(s.at, CodeOpen, `a schema about objects has a type, so that it is known what else there may be`)
	case properties != nil && additional != nil && !closed:
		s.add(s.pointerTo("additionalProperties"), CodeOpen, "must be false beside properties: an object is a record or a map")
	}
	if (has("then") || has("else")) && !has("if") {
		s.add(s.at, CodeKeyword, "then and else stand beside if")
	}
	if n.unique && !s.scalars(n.items) {
		s.add(s.pointerTo("uniqueItems"), CodeValue, "needs items with a type of its own that is none of object, array and number")
	}
	if len(n.names) > MaxNames {
		s.add(s.at, CodeLimit, "names %d members, at most %d", len(n.names), MaxNames)
	}
	for len(n.dependent) > 0 && len(n.dependent) < len(n.names) {
		n.dependent = append(n.dependent, nil)
	}
}

// scalars reports whether the node says by itself that it takes only values that can
// be compared alike in every language.
func (s *subschema) scalars(n *node) bool {
	return n != nil && n.types != 0 && n.types&(isObject|isArray|isNumber) == 0
}

// each tells the members of an object.
func (s *subschema) each(name string, v *value, tell func(string, *value)) {
	if v.kind != '{' {
		s.wrong(name, "must be an object")
		return
	}
	for _, m := range v.members {
		tell(m.name, m.value)
	}
}

func (s *subschema) branches(name string, v *value, in place) []*node {
	if v.kind != '[' || len(v.items) == 0 {
		s.wrong(name, "must be an array of at least one schema")
		return nil
	}
	if len(v.items) > MaxBranches {
		s.add(s.pointerTo(name), CodeLimit, "has %d schemas, at most %d", len(v.items), MaxBranches)
		return nil
	}
	list := make([]*node, len(v.items))
	for i, inner := range v.items {
		list[i] = s.sub(inner, in, name, strconv.Itoa(i))
	}
	return list
}

// name returns the index of a member's name.
func (s *subschema) name(name string) int {
	n := s.node
	i, ok := n.index[name]
	if !ok {
		if n.index == nil {
			n.index = map[string]int{}
		}
		i = len(n.names)
		n.index[name] = i
		n.names = append(n.names, name)
		n.properties = append(n.properties, nil)
	}
	return i
}

func (s *subschema) nameList(v *value, names ...string) []int {
	at := s.pointerTo(names...)
	if v.kind != '[' {
		s.add(at, CodeValue, "must be an array of names")
		return nil
	}
	var list []int
	for _, item := range v.items {
		if item.kind != '"' {
			s.add(at, CodeValue, "must be an array of names")
			return nil
		}
		i := s.name(item.text)
		if slices.Contains(list, i) {
			s.add(at, CodeValue, "has %s twice", strconv.Quote(cut(item.text)))
			return list
		}
		list = append(list, i)
		if len(s.node.names) > MaxNames {
			return list // refused for that
		}
	}
	return list
}

func (s *subschema) types(v *value) {
	list := []*value{v}
	if v.kind == '[' {
		list = v.items
	}
	for _, t := range list {
		i := slices.Index(kindNames, t.text)
		if t.kind != '"' || i < 0 {
			s.wrong("type", "must be one of %s, or an array of them", strings.Join(kindNames, ", "))
			return
		}
		if s.node.types&(1<<i) != 0 {
			s.wrong("type", "has %s twice", t.text)
		}
		s.node.types |= 1 << i
	}
	if len(list) == 0 {
		s.wrong("type", "must have at least one type")
	}
}

func (s *subschema) enum(name string, items []*value) {
	var list []scalar
	var words []string
	for _, item := range items {
		e := scalar{kind: item.kind, text: item.text}
		switch item.kind {
		case '{', '[':
			s.wrong(name, "values are strings, numbers, true, false and null")
			return
		case '0':
			f, err := strconv.ParseFloat(string(item.raw), 64)
			if err != nil || math.Abs(f) > maxIntegerNumber {
				s.wrong(name, "a number that is not read alike in every language")
				return
			}
			e.number = f
		}
		if slices.Contains(list, e) {
			s.wrong(name, "has a value twice")
			return
		}
		list = append(list, e)
		words = append(words, string(item.raw))
	}
	n := s.node
	if n.enum != nil { // enum and const
		list = slices.DeleteFunc(list, func(e scalar) bool { return !slices.Contains(n.enum, e) })
		if list == nil {
			list = []scalar{}
		}
	}
	n.enum = list
	if n.allowed = strings.Join(words, ", "); len(n.allowed) > 256 {
		n.allowed = strconv.Itoa(len(list)) + " values that the schema lists"
	}
}

// number returns a finite number within ±(2^53-1).
func (s *subschema) number(name string, v *value) *float64 {
	f, err := strconv.ParseFloat(string(v.raw), 64)
	if v.kind != '0' || err != nil || math.Abs(f) > maxIntegerNumber {
		s.wrong(name, "must be a number within -(2^53-1) to 2^53-1")
		return nil
	}
	s.node.number = true
	return &f
}

// integer returns an integer of at least least, written without fraction or exponent.
func (s *subschema) integer(name string, v *value, least int) int {
	i, err := strconv.ParseInt(string(v.raw), 10, 64)
	if v.kind != '0' || err != nil || i < int64(least) || i > maxIntegerNumber {
		s.wrong(name, "must be an integer from %d, written without fraction or exponent", least)
		return least
	}
	return int(min(i, math.MaxInt))
}

func (s *subschema) pattern(name string, v *value) {
	if v.kind != '"' {
		s.wrong(name, "must be a string")
		return
	}
	re, positions, err := compilePattern(v.text)
	if err != nil {
		s.add(s.pointerTo(name), CodePattern, "%v", err)
		return
	}
	s.patterns++
	s.positions += positions
	if s.patterns == MaxPatterns+1 {
		s.add(s.pointerTo(name), CodeLimit, "more than %d patterns", MaxPatterns)
	}
	if s.positions > MaxAllPositions && s.positions-positions <= MaxAllPositions {
		s.add(s.pointerTo(name), CodeLimit, "all patterns together, with their repeats written out, have more than %d characters", MaxAllPositions)
	}
	s.node.text, s.node.pattern = true, re
}

func isDefinition(s string) bool {
	if s == "" || len(s) > 64 || !isWord(rune(s[0])) || s[0] <= '9' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isWord(rune(c)) && c != '_' && c != '.' && c != '-' {
			return false
		}
	}
	return true
}

// cut bounds a foreign name.
func cut(name string) string {
	const shown = 64
	if len(name) <= shown {
		return name
	}
	end := shown
	for end > 0 && !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end] + "…"
}
