package strict

import (
	"encoding/json"
	"reflect"
	"strings"
)

// Decode reads a document into v, a pointer to a struct, by v's json tags, strictly:
// members of structs are named exactly as written in the tag, those without
// omitempty or omitzero must be there, and null stands only where the Go type is a
// pointer whose member is required. The error is an *Error, a *MemberError, or one
// of encoding/json.
func Decode(document []byte, v any) error {
	if err := Check(document); err != nil {
		return err
	}
	if err := shaped(document, reflect.TypeOf(v).Elem()); err != nil {
		return err
	}
	return json.Unmarshal(document, v)
}

// shaped holds a value to a type.
func shaped(value []byte, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Struct:
		return shapedStruct(value, t)
	case reflect.Map:
		members, err := Members(value)
		if err != nil {
			return err
		}
		for _, m := range members {
			if err := shapedMember(m.Name, m.Value, t.Elem()); err != nil {
				return err
			}
		}
	case reflect.Slice:
		return List(func(element []byte) error { return shaped(element, t.Elem()) })(value)
	default:
		if string(value) == "null" {
			return wrong("must not be null")
		}
	}
	return nil
}

func shapedMember(name string, value []byte, t reflect.Type) error {
	if err := shaped(value, t); err != nil {
		return within(name, err)
	}
	return nil
}

func shapedStruct(value []byte, t reflect.Type) error {
	members, err := Members(value)
	if err != nil {
		return err
	}
	present := map[string]bool{}
	for _, m := range members {
		present[m.Name] = true
		field, required, ok := tagged(t, m.Name)
		if !ok {
			return wrong("has the unknown member %s", Quote(m.Name))
		}
		if field.Kind() == reflect.Pointer && required && string(m.Value) == "null" {
			continue
		}
		if err := shapedMember(m.Name, m.Value, field); err != nil {
			return err
		}
	}
	for i := range t.NumField() {
		name, required := tag(t.Field(i))
		if required && !present[name] {
			return &MemberError{Path: name, Message: "is required"}
		}
	}
	return nil
}

func tagged(t reflect.Type, name string) (field reflect.Type, required, ok bool) {
	for i := range t.NumField() {
		if n, required := tag(t.Field(i)); n == name {
			return t.Field(i).Type, required, true
		}
	}
	return nil, false, false
}

func tag(f reflect.StructField) (name string, required bool) {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name, !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero")
}
