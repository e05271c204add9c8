package strict

import "bytes"

// names holds the member names of all objects that are open, one object's after
// the other's. Small sets are compared name by name and cost no memory of their
// own; a large one has a map, so that an object of 100,000 members costs linear
// time.
type names struct {
	n       int
	few     [48]span
	more    []span // those beyond few
	escaped bool   // some name of the document holds an escape
}

// A span is the place of a name in the document, without its quotes.
type span struct{ start, size int }

// large is the number of names from which on an object has a map.
const large = 24

// add reports whether the name was not in o.
func (n *names) add(data []byte, o *Open, start, size int, escaped bool) bool {
	n.escaped = n.escaped || escaped
	name := data[start : start+size]
	if o.many != nil {
		key := string(Unescape(name, escaped))
		if _, ok := o.many[key]; ok {
			return false
		}
		o.many[key] = struct{}{}
		return true
	}
	for i := o.first; i < n.n; i++ {
		have := n.at(i)
		if !n.escaped {
			if have.size == size && string(data[have.start:have.start+size]) == string(name) {
				return false
			}
		} else if bytes.Equal(plainName(data, have), plainName(data, span{start, size})) {
			return false
		}
	}
	n.push(span{start, size})
	if n.n-o.first == large {
		o.many = make(map[string]struct{}, 4*large)
		for i := o.first; i < n.n; i++ {
			o.many[string(plainName(data, n.at(i)))] = struct{}{}
		}
	}
	return true
}

func (n *names) at(i int) span {
	if i < len(n.few) {
		return n.few[i]
	}
	return n.more[i-len(n.few)]
}

func (n *names) push(s span) {
	if n.n < len(n.few) {
		n.few[n.n] = s
	} else {
		n.more = append(n.more[:n.n-len(n.few)], s)
	}
	n.n++
}

func plainName(data []byte, s span) []byte {
	raw := data[s.start : s.start+s.size]
	return Unescape(raw, bytes.IndexByte(raw, '\\') >= 0)
}
