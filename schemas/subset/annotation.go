package subset

import "slices"

// The annotations that a settings page and the host know. Others are refused: each
// new one is a change of the vocabulary, not of one package.
const (
	AnnotationWidget      = "x-ui:widget"
	AnnotationGroup       = "x-ui:group"
	AnnotationOrder       = "x-ui:order"
	AnnotationPlaceholder = "x-ui:placeholder"
	AnnotationMultiline   = "x-ui:multiline"
	AnnotationSecretRef   = "x-secretRefAllowed"
	AnnotationRedact      = "x-redact"
)

// Widgets and Redactions are the words of two annotations.
var (
	Widgets    = []string{"text", "password", "number", "checkbox", "select", "radio", "list", "date-time", "path", "secret"}
	Redactions = []string{"full", "hash", "prefix"}
)

// MaxUIText bounds the text of a group or placeholder, in bytes.
const MaxUIText = 256

func (s *subschema) annotation(name string, v *value) {
	wrong := func(format string, args ...any) { s.add(s.pointerTo(name), CodeAnnotation, format, args...) }
	switch name {
	case AnnotationWidget:
		if v.kind != '"' || !slices.Contains(Widgets, v.text) {
			wrong("must be one of %q", Widgets)
			return
		}
		s.node.private = v.text == "password" || v.text == "secret"
	case AnnotationGroup, AnnotationPlaceholder:
		if v.kind != '"' || v.text == "" || len(v.text) > MaxUIText {
			wrong("must be a string of 1 to %d bytes", MaxUIText)
		}
	case AnnotationOrder:
		if v.kind != '0' || !plainInteger(v.raw) {
			wrong("must be an integer of at most nine digits")
		}
	case AnnotationMultiline:
		if v.kind != 't' && v.kind != 'f' {
			wrong("must be true or false")
		}
	case AnnotationSecretRef:
		if v.kind != 't' && v.kind != 'f' {
			wrong("must be true or false")
			return
		}
		if v.kind == 't' {
			s.secretRef(wrong)
			s.node.secret = true
		}
	case AnnotationRedact:
		if v.kind != '"' || !slices.Contains(Redactions, v.text) {
			wrong("must be one of %q", Redactions)
			return
		}
		s.node.redact = true
	default:
		wrong("is not an annotation of the subset")
	}
}

func plainInteger(raw []byte) bool {
	digits := raw
	if raw[0] == '-' {
		digits = raw[1:]
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(digits) <= 9
}

// secretRef holds a schema that lets a secret be referred to to the form of such a
// reference: {"secretRef": {"provider", "name", "version"?}}, and no value beside it.
func (s *subschema) secretRef(wrong func(string, ...any)) {
	const form = `stands in the schema of a reference: type object, additionalProperties false, required and only property secretRef, whose schema is such a record with the strings provider, name and, if at all, version`
	ref, ok := record(s.value, []string{"secretRef"}, nil)
	if !ok {
		wrong(form)
		return
	}
	inner, ok := record(ref["secretRef"], []string{"provider", "name"}, []string{"version"})
	if !ok {
		wrong(form)
		return
	}
	for _, v := range inner {
		if t := v.member("type"); v.kind != '{' || t == nil || t.text != "string" {
			wrong(form)
			return
		}
	}
}

// record returns the properties of a schema of a closed object that requires exactly
// the members in required and may have those in optional.
func record(v *value, required, optional []string) (map[string]*value, bool) {
	if v == nil || v.kind != '{' {
		return nil, false
	}
	kind, additional, properties, names := v.member("type"), v.member("additionalProperties"), v.member("properties"), v.member("required")
	if kind == nil || kind.text != "object" || additional == nil || additional.kind != 'f' || properties == nil || names == nil || len(names.items) != len(required) {
		return nil, false
	}
	for _, item := range names.items {
		if !slices.Contains(required, item.text) {
			return nil, false
		}
	}
	found := map[string]*value{}
	for _, m := range properties.members {
		if !slices.Contains(required, m.name) && !slices.Contains(optional, m.name) {
			return nil, false
		}
		found[m.name] = m.value
	}
	for _, name := range required {
		if found[name] == nil {
			return nil, false
		}
	}
	return found, true
}
