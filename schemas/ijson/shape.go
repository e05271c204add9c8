package ijson

import (
	"bytes"
	"encoding"
	stdjson "encoding/json"
	"reflect"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A shape is what a Go type says about an object or array: the members of a
// struct, or the one kind of value in a map, slice or array.
type shape struct {
	members  []member // of a struct, never nil for one
	required int      // how many of them are required
	elem     edge     // of anything else
}

// An edge leads to a value of a document. Without a shape nothing is known
// about the value: it is a scalar, raw, or read by its own method.
type edge struct {
	to   *shape
	null bool // null may stand there
}

type member struct {
	name     string
	edge     edge
	required bool
}

// find returns the index of a member by its exact name, or -1. It tries hint
// first: most documents hold their members in the order of the type.
func (sh *shape) find(name []byte, hint int) int {
	n := len(sh.members)
	for k := range n {
		i := hint + k
		if i >= n {
			i -= n
		}
		if sh.members[i].name == string(name) {
			return i
		}
	}
	return -1
}

// alike returns the member whose name differs from name in case only, or "".
func (sh *shape) alike(name []byte) string {
	for _, m := range sh.members {
		if bytes.EqualFold([]byte(m.name), name) {
			return m.name
		}
	}
	return ""
}

// edges caches edgeOf: reflect.Type to edge.
var edges sync.Map

// edgeOf returns the edge to the root value of a document read into t.
func edgeOf(t reflect.Type) edge {
	if e, ok := edges.Load(t); ok {
		return e.(edge)
	}
	e := builder{}.edge(t)
	edges.Store(t, e)
	return e
}

// A builder makes the shapes of one type; it knows those begun, so that a type
// may contain itself.
type builder map[reflect.Type]*shape

func (b builder) edge(t reflect.Type) edge {
	switch {
	case isRaw(t):
		return edge{null: true}
	case t.Kind() == reflect.Pointer:
		return edge{to: b.edge(t.Elem()).to, null: true}
	case t.Kind() == reflect.Interface:
		return edge{null: true}
	case readsItself(t):
		return edge{}
	}
	switch t.Kind() {
	case reflect.Struct:
		return edge{to: b.structure(t)}
	case reflect.Map, reflect.Array, reflect.Slice:
		if t.Kind() != reflect.Map && t.Elem().Kind() == reflect.Uint8 {
			return edge{} // a base64 string
		}
		sh, begun := b[t]
		if !begun {
			sh = new(shape)
			b[t] = sh
			sh.elem = b.edge(t.Elem())
		}
		return edge{to: sh}
	}
	return edge{}
}

func (b builder) structure(t reflect.Type) *shape {
	if sh, begun := b[t]; begun {
		return sh
	}
	sh := &shape{members: []member{}}
	b[t] = sh
	b.members(sh, t)
	for _, m := range sh.members {
		if m.required {
			sh.required++
		}
	}
	return sh
}

// members appends the members of t, those of embedded structs after t's own: a
// name nearer to the root hides one further away, as in encoding/json.
func (b builder) members(sh *shape, t reflect.Type) {
	var embedded []reflect.Type
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if inner, ok := embeddedStruct(f, name); ok {
			embedded = append(embedded, inner)
			continue
		}
		if tag == "-" || !f.IsExported() {
			continue
		}
		if name == "" {
			name = f.Name
		}
		if sh.find([]byte(name), 0) >= 0 {
			continue
		}
		m := member{name: name, edge: b.edge(f.Type), required: true}
		for option := range strings.SplitSeq(options, ",") {
			if option == "omitempty" || option == "omitzero" {
				m.required = false
				// Null would be taken for absent, unless kept as it stands.
				m.edge.null = isRaw(f.Type)
			}
		}
		sh.members = append(sh.members, m)
	}
	for _, inner := range embedded {
		b.members(sh, inner)
	}
}

// embeddedStruct returns the struct whose members f contributes to its own.
func embeddedStruct(f reflect.StructField, name string) (reflect.Type, bool) {
	if !f.Anonymous || name != "" {
		return nil, false
	}
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t, t.Kind() == reflect.Struct
}

// isRaw reports whether t keeps its JSON as it stands, null included.
func isRaw(t reflect.Type) bool {
	return t == reflect.TypeFor[stdjson.RawMessage]() || t == reflect.TypeFor[jsontext.Value]()
}

// readsItself reports whether t is decoded by a method or a rule of its own.
func readsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.UnmarshalerFrom]()) ||
		p.Implements(reflect.TypeFor[json.Unmarshaler]()) ||
		p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}
