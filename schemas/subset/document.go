package subset

import (
	"encoding/json"
	"unicode/utf8"
)

// A value is one JSON value of a schema document.
type value struct {
	kind    byte // '{' '[' '"' '0' 't' 'f' 'n'
	text    string
	raw     []byte // as written
	members []member
	items   []*value
}

type member struct {
	name  string
	value *value
}

func (v *value) member(name string) *value {
	for _, m := range v.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// parse reads a document that must be one JSON object; nil if it is not.
func parse(document []byte) *value {
	if !json.Valid(document) || !utf8.Valid(document) {
		return nil
	}
	p := parser{data: document}
	v := p.value(spaced(document, 0), 0)
	if v == nil || v.kind != '{' {
		return nil
	}
	return v
}

// A parser walks a document that is JSON.
type parser struct{ data []byte }

// value returns the value at pos, nil if it is nested too deep or has a name twice.
func (p *parser) value(pos, depth int) *value {
	if depth > MaxDepth {
		return nil
	}
	v := &value{kind: p.data[pos], raw: p.data[pos:pastValue(p.data, pos)]}
	switch v.kind {
	case '"':
		v.text = string(appendUnescaped(nil, v.raw[1:len(v.raw)-1]))
	case '{':
		seen := map[string]bool{}
		for pos = spaced(p.data, pos+1); p.data[pos] != '}'; {
			end, _ := pastString(p.data, pos)
			name := string(appendUnescaped(nil, p.data[pos+1:end-1]))
			pos = spaced(p.data, spaced(p.data, end)+1)
			inner := p.value(pos, depth+1)
			if inner == nil || seen[name] {
				return nil
			}
			seen[name] = true
			v.members = append(v.members, member{name, inner})
			pos = p.next(pos + len(inner.raw))
		}
	case '[':
		for pos = spaced(p.data, pos+1); p.data[pos] != ']'; {
			inner := p.value(pos, depth+1)
			if inner == nil {
				return nil
			}
			v.items = append(v.items, inner)
			pos = p.next(pos + len(inner.raw))
		}
	case 't', 'f', 'n':
	default:
		v.kind = '0'
	}
	return v
}

// next passes white space and a comma.
func (p *parser) next(pos int) int {
	if pos = spaced(p.data, pos); p.data[pos] == ',' {
		return spaced(p.data, pos+1)
	}
	return pos
}
