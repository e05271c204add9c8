package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/internal/strict"
)

// JSON encodes v for OperateResult.Output. Invalid UTF-8 is written as U+FFFD;
// NaN, infinities and other values that JSON lacks are errors.
func JSON(v any) (json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("output: %w", err)
	}
	return raw, nil
}

// DecodeInput reads the input of an action into v, a pointer to a struct, and
// refuses members that the struct lacks or spells differently. The error is an
// *Error with CodeBadParams.
func (r OperateRequest) DecodeInput(v any) error {
	d := json.NewDecoder(bytes.NewReader(r.Input))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return BadInput("input: %s", inputFault(err))
	}
	if name := misspeltIn(r.Input, v); name != "" {
		return BadInput("input: unknown member %s", strict.Quote(name))
	}
	return nil
}

// misspeltIn is misspelt for a value that was read into v.
func misspeltIn(value []byte, v any) string {
	t := reflect.TypeOf(v)
	if t == nil {
		return ""
	}
	return misspelt(value, t)
}

// inputFault says what is wrong without the names of Go types.
func inputFault(err error) string {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		if kind.Field == "" {
			return "must not be a JSON " + kind.Value
		}
		return kind.Field + " must not be a JSON " + kind.Value
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// misspelt returns a member of value that encoding/json matched to a field of t
// although the spelling differs in case, or "".
func misspelt(value []byte, t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return "" // decides about its value itself
	}
	switch t.Kind() {
	case reflect.Struct:
		members, err := strict.Members(value)
		if err != nil {
			return "" // null
		}
		for _, m := range members {
			field, known := fieldNamed(t, m.Name)
			if !known {
				return m.Name
			}
			if name := misspelt(m.Value, field); name != "" {
				return name
			}
		}
	case reflect.Map:
		members, _ := strict.Members(value)
		for _, m := range members {
			if name := misspelt(m.Value, t.Elem()); name != "" {
				return name
			}
		}
	case reflect.Slice, reflect.Array:
		found := ""
		// A base64 string has no elements, and then nothing can be misspelt.
		_ = strict.List(func(v []byte) error {
			if found == "" {
				found = misspelt(v, t.Elem())
			}
			return nil
		})(value)
		return found
	}
	return ""
}

// fieldNamed returns the type of the field that is written as name.
func fieldNamed(t reflect.Type, name string) (reflect.Type, bool) {
	for _, f := range reflect.VisibleFields(t) {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == name || tag == "" && f.IsExported() && !f.Anonymous && f.Name == name {
			return f.Type, true
		}
	}
	return nil, false
}
