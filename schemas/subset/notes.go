package subset

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// A Note is what a schema's annotations say of one place of a value.
type Note struct {
	Pointer string // RFC 6901
	Private bool   // the value is not to be shown: x-redact, or a widget for passwords and secrets
	Secret  bool   // the value may be a reference to a secret, which the host resolves
}

// Notes returns what the annotations say of the parts of a value, in document order. An
// alternative counts whether or not the value matches it. Below a place that is private
// nothing more is told. A value that has not passed the value rules has no notes but one:
// all of it is private.
func (s *Schema) Notes(value []byte) []Note {
	if json.Valid(value) && utf8.Valid(value) {
		p := parser{data: value}
		if v := p.value(spaced(value, 0), 0); v != nil {
			return notes(nil, "", v, []*node{s.root})
		}
	}
	return []Note{{Private: true}}
}

func notes(list []Note, at string, v *value, meets []*node) []Note {
	meets = everyNode(meets)
	note := Note{Pointer: at}
	for _, n := range meets {
		note.Private = note.Private || n.redact || n.private
		note.Secret = note.Secret || n.secret
	}
	if note.Private || note.Secret {
		list = append(list, note)
	}
	if note.Private {
		return list
	}
	for _, m := range v.members {
		var inner []*node
		for _, n := range meets {
			if i, ok := n.index[m.name]; ok && n.properties[i] != nil {
				inner = append(inner, n.properties[i])
			} else if n.additional != nil {
				inner = append(inner, n.additional)
			}
		}
		list = notes(list, at+"/"+escapeToken(m.name), m.value, inner)
	}
	for i, item := range v.items {
		var inner []*node
		for _, n := range meets {
			if i < len(n.prefix) {
				inner = append(inner, n.prefix[i])
			} else if n.items != nil {
				inner = append(inner, n.items)
			}
		}
		list = notes(list, at+"/"+strconv.Itoa(i), item, inner)
	}
	return list
}

// everyNode adds the subschemas that meet the same value.
func everyNode(meets []*node) []*node {
	seen := map[*node]bool{}
	var all []*node
	for len(meets) > 0 {
		n := meets[len(meets)-1]
		meets = meets[:len(meets)-1]
		if !seen[n] {
			seen[n] = true
			all = append(all, n)
			meets = append(meets, n.inPlace()...)
		}
	}
	return all
}
