// Package settings edits the settings of a session package as one JSON object: members
// at JSON Pointers are read, set and removed, and what its schema calls private is
// masked.
//
// It neither validates nor keeps anything.
package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/switchyard-plugins/switchyard/schemas/ijson"
	"github.com/switchyard-plugins/switchyard/schemas/subset"
)

// Mask stands for what is private. It is no value that could be set by mistake: a
// document that is shown is never read again.
const Mask = "[redacted]"

// Errors about places. A *PlaceError wraps one.
var (
	ErrPointer = errors.New(`is no JSON Pointer: it begins with "/", "~" is spelt "~0" and "/" inside of a name "~1"`)
	ErrNoPlace = errors.New("does not exist")
	ErrNoRoom  = errors.New("lies below a value that has no members")
)

// A PlaceError says what is wrong with a pointer.
type PlaceError struct {
	Pointer string
	Err     error
}

func (e *PlaceError) Error() string { return fmt.Sprintf("%q %v", e.Pointer, e.Err) }
func (e *PlaceError) Unwrap() error { return e.Err }

// A Document is settings: one JSON object. The zero value is an empty one.
type Document struct{ root any }

// Parse reads settings, which must keep the value rules.
func Parse(text []byte) (*Document, error) {
	if err := ijson.Check(text); err != nil {
		return nil, err
	}
	root, err := decode(text)
	if err != nil {
		return nil, err
	}
	if _, ok := root.(map[string]any); !ok {
		return nil, errors.New("settings are one JSON object")
	}
	return &Document{root}, nil
}

func decode(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}

// JSON returns the document, its members sorted.
func (d *Document) JSON() json.RawMessage { return encode(d.tree()) }

func (d *Document) tree() any {
	if d.root == nil {
		d.root = map[string]any{}
	}
	return d.root
}

func encode(v any) json.RawMessage {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // of what decode made
	return bytes.TrimSuffix(out.Bytes(), []byte{'\n'})
}

// Empty reports whether there are no settings.
func (d *Document) Empty() bool { return len(d.tree().(map[string]any)) == 0 }

// Get returns the value at a pointer.
func (d *Document) Get(pointer string) (json.RawMessage, error) {
	path, err := split(pointer)
	if err != nil {
		return nil, err
	}
	v := d.tree()
	for _, name := range path {
		next, ok := child(v, name)
		if !ok {
			return nil, &PlaceError{pointer, ErrNoPlace}
		}
		v = next
	}
	return encode(v), nil
}

func child(v any, name string) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		next, ok := v[name]
		return next, ok
	case []any:
		if i, ok := index(name, len(v)); ok {
			return v[i], true
		}
	}
	return nil, false
}

// index reads the index of an element that exists.
func index(name string, n int) (int, bool) {
	i, err := strconv.Atoi(name)
	return i, err == nil && i >= 0 && i < n && strconv.Itoa(i) == name
}

// Set puts a value, which must keep the value rules, at a pointer. Objects on the way
// that are missing are made; "-" is the place after an array's last element.
func (d *Document) Set(pointer string, value []byte) error {
	if err := ijson.Check(value); err != nil {
		return err
	}
	v, err := decode(value)
	if err != nil {
		return err
	}
	path, err := split(pointer)
	if err != nil {
		return err
	}
	if len(path) == 0 {
		whole, err := Parse(value)
		if err == nil {
			d.root = whole.root
		}
		return err
	}
	root, ok := put(d.tree(), path, v)
	if !ok {
		return &PlaceError{pointer, ErrNoRoom}
	}
	d.root = root
	return nil
}

func put(at any, path []string, v any) (any, bool) {
	if len(path) == 0 {
		return v, true
	}
	name := path[0]
	switch at := at.(type) {
	case nil: // missing, or null: an object takes its place
		inner, ok := put(nil, path[1:], v)
		return map[string]any{name: inner}, ok
	case map[string]any:
		inner, ok := put(at[name], path[1:], v)
		if ok {
			at[name] = inner
		}
		return at, ok
	case []any:
		if name == "-" {
			inner, ok := put(nil, path[1:], v)
			return append(at, inner), ok
		}
		i, ok := index(name, len(at))
		if !ok {
			return at, false
		}
		inner, ok := put(at[i], path[1:], v)
		if ok {
			at[i] = inner
		}
		return at, ok
	}
	return at, false
}

// Remove takes the value at a pointer away; of an array, later elements move up. "" takes
// all away.
func (d *Document) Remove(pointer string) error {
	path, err := split(pointer)
	if err != nil {
		return err
	}
	if len(path) == 0 {
		d.root = map[string]any{}
		return nil
	}
	root, ok := take(d.tree(), path)
	if !ok {
		return &PlaceError{pointer, ErrNoPlace}
	}
	d.root = root
	return nil
}

func take(at any, path []string) (any, bool) {
	inner, ok := child(at, path[0])
	if !ok {
		return at, false
	}
	last := len(path) == 1
	if !last {
		if inner, ok = take(inner, path[1:]); !ok {
			return at, false
		}
	}
	switch at := at.(type) {
	case map[string]any:
		if last {
			delete(at, path[0])
		} else {
			at[path[0]] = inner
		}
	case []any:
		i, _ := index(path[0], len(at))
		if last {
			return slices.Delete(at, i, i+1), true
		}
		at[i] = inner
	}
	return at, true
}

// Shown returns the document as it may be shown: values that the notes of its schema call
// private are masked.
func Shown(text []byte, notes []subset.Note) json.RawMessage {
	d, err := Parse(text)
	if err != nil {
		return encode(Mask)
	}
	for _, n := range notes {
		if !n.Private {
			continue
		}
		if n.Pointer == "" {
			return encode(Mask)
		}
		if err := d.Set(n.Pointer, encode(Mask)); err != nil {
			return encode(Mask)
		}
	}
	return d.JSON()
}

// Private reports whether a place, or something inside of it, is private by the notes.
func Private(pointer string, notes []subset.Note) bool {
	for _, n := range notes {
		if n.Private && (n.Pointer == pointer || strings.HasPrefix(n.Pointer, pointer+"/") || strings.HasPrefix(pointer, n.Pointer+"/")) {
			return true
		}
	}
	return false
}

// split reads a JSON Pointer (RFC 6901).
func split(pointer string) ([]string, error) {
	if pointer == "" {
		return nil, nil
	}
	if pointer[0] != '/' {
		return nil, &PlaceError{pointer, ErrPointer}
	}
	path := strings.Split(pointer[1:], "/")
	for i, token := range path {
		for rest := token; ; {
			_, after, found := strings.Cut(rest, "~")
			if !found {
				break
			}
			if after == "" || after[0] != '0' && after[0] != '1' {
				return nil, &PlaceError{pointer, ErrPointer}
			}
			rest = after
		}
		path[i] = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
	}
	return path, nil
}
