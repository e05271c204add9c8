package subset

import (
	"bytes"
	"fmt"
	"strconv"
)

// enter goes one level down.
func (r *run) enter() bool {
	if r.depth++; r.depth > MaxDepth {
		r.stop("json.limit", fmt.Sprintf("has more than %d levels", MaxDepth))
	}
	return !r.stopped
}

func (r *run) arrayAt(n *node, pos int) (end int, ok bool) {
	if !r.typed(n, isArray) {
		if r.quiet > 0 {
			return pos, false
		}
		end, _ = r.pass(pos)
		return end, false
	}
	ok = r.listed(n, '[', nil, 0)
	if !n.array {
		end, passed := r.pass(pos)
		return end, ok && passed
	}
	if !ok && r.quiet > 0 || !r.enter() {
		return pos, false
	}
	var seen map[string]struct{}
	if n.unique {
		seen = map[string]struct{}{}
	}
	count := 0
	r.path = append(r.path, step{-1, 0})
	at := len(r.path) - 1
	for pos = spaced(r.data, pos+1); ; count++ {
		if pos >= len(r.data) {
			r.broken()
			return pos, false
		}
		if r.data[pos] == ']' {
			break
		}
		r.path[at].end = count
		item := n.items
		if count < len(n.prefix) {
			item = n.prefix[count]
		}
		var held bool
		if end, held = pos, true; item == nil {
			held = r.spend(1)
			if held {
				end, held = r.pass(pos)
			}
		} else {
			end, held = r.value(item, pos)
		}
		if r.stopped || !held && r.quiet > 0 {
			return end, false
		}
		ok = ok && held
		if seen != nil && held {
			key := r.comparable(r.data[pos:end])
			if _, twice := seen[key]; twice {
				ok = r.fail(CodeMismatch, "is there twice")
			}
			seen[key] = struct{}{}
		}
		if pos = spaced(r.data, end); pos < len(r.data) && r.data[pos] == ',' {
			pos = spaced(r.data, pos+1)
		} else if pos >= len(r.data) || r.data[pos] != ']' {
			r.broken()
			return pos, false
		}
	}
	r.path = r.path[:at]
	r.depth--
	if count < n.minItems {
		ok = r.fail(CodeMismatch, "must have at least %d elements", n.minItems)
	}
	if n.maxItems >= 0 && count > n.maxItems {
		ok = r.fail(CodeMismatch, "must have at most %d elements", n.maxItems)
	}
	return pos + 1, ok
}

// comparable returns text that two scalars share if and only if they are equal.
func (r *run) comparable(raw []byte) string {
	switch c := raw[0]; {
	case c == '"' && bytes.IndexByte(raw, '\\') >= 0:
		r.scratch = append(appendUnescaped(append(r.scratch[:0], '"'), raw[1:len(raw)-1]), '"')
		return string(r.scratch)
	case c == '-' || '0' <= c && c <= '9':
		if f, ok := numeric(raw); ok {
			return strconv.FormatFloat(f+0, 'g', -1, 64)
		}
	}
	return string(raw)
}

func (r *run) objectAt(n *node, pos int) (end int, ok bool) {
	if !r.typed(n, isObject) {
		if r.quiet > 0 {
			return pos, false
		}
		end, _ = r.pass(pos)
		return end, false
	}
	ok = r.listed(n, '{', nil, 0)
	if !n.object {
		end, passed := r.pass(pos)
		return end, ok && passed
	}
	if !ok && r.quiet > 0 || !r.enter() {
		return pos, false
	}
	var seen [MaxNames / 64]uint64
	count := 0
	r.path = append(r.path, step{})
	at := len(r.path) - 1
	for pos = spaced(r.data, pos+1); ; count++ {
		if pos >= len(r.data) || r.data[pos] != '"' && r.data[pos] != '}' {
			r.broken()
			return pos, false
		}
		if r.data[pos] == '}' {
			break
		}
		name, held := pos, true
		if pos, held = r.memberAt(n, at, name, &seen); r.stopped || !held && r.quiet > 0 {
			return pos, false
		}
		ok = ok && held
		if pos = spaced(r.data, pos); pos < len(r.data) && r.data[pos] == ',' {
			pos = spaced(r.data, pos+1)
		} else if pos >= len(r.data) || r.data[pos] != '}' {
			r.broken()
			return pos, false
		}
	}
	r.path = r.path[:at]
	r.depth--
	if len(n.required) > 0 || n.dependent != nil {
		ok = r.present(n, &seen) && ok
	}
	if count < n.minMembers {
		ok = r.fail(CodeMismatch, "must have at least %d members", n.minMembers)
	}
	if n.maxMembers >= 0 && count > n.maxMembers {
		ok = r.fail(CodeMismatch, "must have at most %d members", n.maxMembers)
	}
	return pos + 1, ok
}

// memberAt judges the member whose name begins at pos and returns the position after
// its value.
func (r *run) memberAt(n *node, at, pos int, seen *[MaxNames / 64]uint64) (end int, ok bool) {
	colon, escaped := pastString(r.data, pos)
	if colon < 0 || colon > len(r.data) {
		r.broken()
		return pos, false
	}
	name := r.data[pos+1 : colon-1]
	r.path[at] = step{pos + 1, colon - 1}
	if escaped {
		r.scratch = appendUnescaped(r.scratch[:0], name)
		name = r.scratch
	}
	i, known := n.index[string(name)]
	var inner *node
	if known {
		seen[i>>6] |= 1 << (i & 63)
		inner = n.properties[i]
	}
	begin := spaced(r.data, colon)
	if begin >= len(r.data) || r.data[begin] != ':' {
		r.broken()
		return pos, false
	}
	begin = spaced(r.data, begin+1)
	ok = true
	if n.nameSchema != nil && !r.holds(n.nameSchema, pos) && !r.stopped {
		if ok = r.fail(CodeMismatch, "the member's name is not allowed"); r.quiet > 0 {
			return begin, false
		}
	}
	if inner == nil {
		if inner = n.additional; inner != nil && inner.never {
			if r.quiet > 0 {
				return begin, false
			}
			r.unknown()
			end, _ = r.pass(begin)
			return end, false
		}
	}
	held := true
	if inner == nil {
		if end = begin; r.spend(1) {
			end, held = r.pass(begin)
		}
	} else {
		end, held = r.value(inner, begin)
	}
	return end, ok && held && !r.stopped
}

// unknown tells a member that a record does not have. In what is redacted its name is
// not told: names can be data.
func (r *run) unknown() {
	if r.redacted > 0 {
		r.fail(CodeUnknownMember, "has an unknown member")
		return
	}
	s := r.path[len(r.path)-1]
	r.fail(CodeUnknownMember, "unknown member %s", strconv.QuoteToGraphic(cut(string(appendUnescaped(nil, r.data[s.begin:s.end])))))
}

// missing tells that a member is not there. It returns false.
func (r *run) missing(format string, args ...any) bool {
	before := len(r.problems)
	r.fail(CodeMismatch, format, args...)
	if len(r.problems) > before {
		r.problems[before].Missing = true
	}
	return false
}

// present judges required and dependentRequired.
func (r *run) present(n *node, seen *[MaxNames / 64]uint64) bool {
	ok := true
	has := func(i int) bool { return seen[i>>6]&(1<<(i&63)) != 0 }
	for _, i := range n.required {
		if !has(i) {
			ok = r.missing("the member %s is required", strconv.QuoteToGraphic(cut(n.names[i])))
		}
	}
	for i, list := range n.dependent {
		for _, j := range list {
			if has(i) && !has(j) {
				ok = r.missing("the member %s is required beside %s", strconv.QuoteToGraphic(cut(n.names[j])), strconv.QuoteToGraphic(cut(n.names[i])))
			}
		}
	}
	return ok
}
