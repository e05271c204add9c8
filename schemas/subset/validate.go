package subset

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// Validate returns what is wrong with a JSON value, nil if nothing is. The value must
// have passed the value rules (of package ijson, or of the SDK's own reader); white
// space around it is passed over. At most MaxProblems are told, in document order of
// what they are about where the schema has no alternatives.
func (s *Schema) Validate(value []byte) []Problem {
	r := runs.Get().(*run)
	r.data, r.left = value, BaseWork+WorkPerByte*len(value)
	pos := spaced(value, 0)
	end, _ := r.value(s.root, pos)
	if !r.stopped && spaced(value, end) != len(value) {
		r.broken()
	}
	problems := r.problems
	*r = run{path: r.path[:0], scratch: r.scratch[:0]}
	if cap(r.scratch) <= 1<<16 {
		runs.Put(r)
	}
	return problems
}

var runs = sync.Pool{New: func() any { return new(run) }}

// A run is one validation.
type run struct {
	data     []byte
	path     []step
	redacted int // the steps of path that may be told, and one; 0: all of them
	depth    int
	quiet    int  // inside alternatives, where the first fault decides and none is told
	stopped  bool // nothing more is judged
	left     int  // steps of work
	problems []Problem
	scratch  []byte
}

// A step leads to a member (the raw name's place in the data) or, with begin -1, to an
// element.
type step struct{ begin, end int }

// fail tells a fault of the value that is being judged, unless it is inside of an
// alternative. It returns false.
func (r *run) fail(code, format string, args ...any) bool {
	if r.quiet == 0 && !r.stopped {
		r.problems = append(r.problems, Problem{Pointer: r.pointer(), Code: code, Message: fmt.Sprintf(format, args...)})
		r.stopped = len(r.problems) == MaxProblems
	}
	return false
}

// stop ends the run for a reason that is no fault of one value.
func (r *run) stop(code, message string) {
	if !r.stopped {
		r.problems = append(r.problems[:min(len(r.problems), MaxProblems-1)], Problem{Pointer: r.pointer(), Code: code, Message: message})
		r.stopped = true
	}
}

func (r *run) broken() { r.stop(CodeSyntax, "is not JSON that has passed the value rules") }

// spend counts work and reports whether there is any left.
func (r *run) spend(n int) bool {
	if r.left -= n; r.left < 0 {
		r.stop(CodeWork, "costs too much work to check: the schema's alternatives multiply on it")
	}
	return !r.stopped
}

func (r *run) pointer() string {
	path := r.path
	if r.redacted > 0 {
		path = path[:r.redacted-1]
	}
	var b strings.Builder
	for _, s := range path {
		b.WriteByte('/')
		if s.begin < 0 {
			b.WriteString(strconv.Itoa(s.end))
		} else {
			b.WriteString(escapeToken(cut(string(appendUnescaped(nil, r.data[s.begin:s.end])))))
		}
	}
	return b.String()
}

// value judges the value at pos. When it is true, or nothing is quiet, end is the
// position after the value, unless the run was stopped.
func (r *run) value(n *node, pos int) (end int, ok bool) {
	if !r.spend(1) {
		return pos, false
	}
	if pos >= len(r.data) {
		r.broken()
		return pos, false
	}
	if n.redact && r.redacted == 0 {
		r.redacted = len(r.path) + 1
		defer func() { r.redacted = 0 }()
	}
	if n.never {
		end, _ = r.pass(pos)
		return end, r.fail(CodeMismatch, "must not be there")
	}
	switch c := r.data[pos]; {
	case c == '"':
		end, ok = r.textAt(n, pos)
	case c == '{':
		end, ok = r.objectAt(n, pos)
	case c == '[':
		end, ok = r.arrayAt(n, pos)
	case c == 't', c == 'f', c == 'n':
		end, ok = r.wordAt(n, pos)
	case c == '-', '0' <= c && c <= '9':
		end, ok = r.numberAt(n, pos)
	default:
		r.broken()
	}
	if r.stopped || !ok && r.quiet > 0 {
		return end, false
	}
	return end, r.combined(n, pos) && ok
}

// pass goes over a value that nothing is asked of.
func (r *run) pass(pos int) (end int, ok bool) {
	if end = pastValue(r.data, pos); end <= pos {
		r.broken()
		return pos, false
	}
	return end, r.spend((end - pos) / 16)
}

// combined judges the value at pos by the subschemas that meet the same value.
func (r *run) combined(n *node, pos int) bool {
	ok := true
	for _, m := range n.allOf {
		if _, held := r.value(m, pos); !held {
			if ok = false; r.quiet > 0 || r.stopped {
				return false
			}
		}
	}
	if n.anyOf != nil && r.count(n.anyOf, pos, 1) == 0 {
		ok = r.fail(CodeMismatch, "matches none of the %d alternatives", len(n.anyOf))
	}
	if n.oneOf != nil {
		switch held := r.count(n.oneOf, pos, 2); {
		case held == 0:
			ok = r.fail(CodeMismatch, "matches none of the %d alternatives", len(n.oneOf))
		case held > 1:
			ok = r.fail(CodeMismatch, "matches more than one of the %d alternatives", len(n.oneOf))
		}
	}
	if n.not != nil && r.holds(n.not, pos) {
		ok = r.fail(CodeMismatch, "is of the form that is excluded")
	}
	if n.ifNode != nil && (n.thenN != nil || n.elseN != nil) {
		branch := n.elseN
		if r.holds(n.ifNode, pos) {
			branch = n.thenN
		}
		if branch != nil {
			_, held := r.value(branch, pos)
			ok = held && ok
		}
	}
	return ok && !r.stopped
}

// holds reports whether the value at pos passes n, and tells nothing.
func (r *run) holds(n *node, pos int) bool {
	r.quiet++
	path, depth := len(r.path), r.depth
	_, ok := r.value(n, pos)
	r.path, r.depth = r.path[:path], depth
	r.quiet--
	return ok && !r.stopped
}

// count returns how many hold, up to enough.
func (r *run) count(list []*node, pos, enough int) int {
	held := 0
	for _, m := range list {
		if r.holds(m, pos) {
			if held++; held == enough {
				break
			}
		}
	}
	return held
}

// typed judges the type of a value.
func (r *run) typed(n *node, k kinds) bool {
	if n.types == 0 || n.types&k != 0 {
		return true
	}
	return r.fail(CodeMismatch, "must be %v", n.types)
}

func (r *run) wordAt(n *node, pos int) (end int, ok bool) {
	word, kind := "null", isNull
	switch r.data[pos] {
	case 't':
		word, kind = "true", isBoolean
	case 'f':
		word, kind = "false", isBoolean
	}
	end = pos + len(word)
	if end > len(r.data) || string(r.data[pos:end]) != word {
		r.broken()
		return pos, false
	}
	if !r.typed(n, kind) {
		return end, false
	}
	return end, r.listed(n, r.data[pos], nil, 0)
}

// listed judges a value by enum and const.
func (r *run) listed(n *node, kind byte, text []byte, number float64) bool {
	if n.enum == nil {
		return true
	}
	for i := range n.enum {
		if e := &n.enum[i]; e.kind == kind && (kind != '"' || e.text == string(text)) && (kind != '0' || e.number == number) {
			return true
		}
	}
	return r.fail(CodeMismatch, "must be one of %s", n.allowed)
}

// fraction reports whether a number is written as more than digits.
func fraction(raw []byte) bool {
	for _, c := range raw {
		if c == '.' || c == 'e' || c == 'E' {
			return true
		}
	}
	return false
}

// numeric returns the value of a number's text.
func numeric(raw []byte) (f float64, ok bool) {
	if len(raw) <= 15 && !fraction(raw) {
		negative, v := false, int64(0)
		for i, c := range raw {
			switch {
			case c == '-' && i == 0:
				negative = true
			case c >= '0' && c <= '9':
				v = v*10 + int64(c-'0')
			default:
				return 0, false
			}
		}
		if negative {
			v = -v
		}
		return float64(v), true
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	return f, err == nil
}

func (r *run) numberAt(n *node, pos int) (end int, ok bool) {
	end = pastScalar(r.data, pos)
	raw := r.data[pos:end]
	if n.types != 0 && n.types&(isNumber|isInteger) == 0 {
		return end, r.typed(n, isNumber)
	}
	if n.types == 0 && !n.number && n.enum == nil {
		return end, true
	}
	f, ok := numeric(raw)
	if !ok {
		r.broken()
		return end, false
	}
	if n.types != 0 && n.types&isNumber == 0 && f != math.Trunc(f) {
		return end, r.typed(n, isNumber)
	}
	ok = r.listed(n, '0', nil, f)
	if !n.number || !ok && r.quiet > 0 {
		return end, ok
	}
	if n.minimum != nil && f < *n.minimum {
		ok = r.fail(CodeMismatch, "must be at least %v", *n.minimum)
	}
	if n.above != nil && f <= *n.above {
		ok = r.fail(CodeMismatch, "must be more than %v", *n.above)
	}
	if n.maximum != nil && f > *n.maximum {
		ok = r.fail(CodeMismatch, "must be at most %v", *n.maximum)
	}
	if n.below != nil && f >= *n.below {
		ok = r.fail(CodeMismatch, "must be less than %v", *n.below)
	}
	if n.multipleOf != 0 && math.Mod(f, n.multipleOf) != 0 {
		ok = r.fail(CodeMismatch, "must be a multiple of %v", n.multipleOf)
	}
	return end, ok
}

func (r *run) textAt(n *node, pos int) (end int, ok bool) {
	end, escaped := pastString(r.data, pos)
	if end < 0 || end > len(r.data) {
		r.broken()
		return pos, false
	}
	if !r.spend((end - pos) / 16) {
		return end, false
	}
	if !r.typed(n, isString) {
		return end, false
	}
	if !n.text && n.enum == nil {
		return end, true
	}
	inside := r.data[pos+1 : end-1]
	if escaped {
		r.scratch = appendUnescaped(r.scratch[:0], inside)
		inside = r.scratch
	}
	ok = r.listed(n, '"', inside, 0)
	if n.minLength > 0 || n.maxLength >= 0 {
		ok = r.long(n, inside) && ok
	}
	if n.formed != nil && !n.formed(inside) {
		ok = r.fail(CodeMismatch, "is not of the format %s", n.format)
	}
	if n.pattern != nil && (ok || r.quiet == 0) && r.spend(len(inside)/2) && !n.pattern.Match(inside) {
		ok = r.fail(CodeMismatch, "must match %s", n.pattern)
	}
	return end, ok && !r.stopped
}

// long judges how many characters a string has. A character is one to four bytes, so
// that most are not counted.
func (r *run) long(n *node, text []byte) bool {
	if (len(text)+3)/4 >= n.minLength && (n.maxLength < 0 || len(text) <= n.maxLength) {
		return true
	}
	length, ok := utf8.RuneCount(text), true
	if length < n.minLength {
		ok = r.fail(CodeMismatch, "must have at least %s", characters(n.minLength))
	}
	if n.maxLength >= 0 && length > n.maxLength {
		ok = r.fail(CodeMismatch, "must have at most %s", characters(n.maxLength))
	}
	return ok
}

func characters(n int) string {
	if n == 1 {
		return "1 character"
	}
	return strconv.Itoa(n) + " characters"
}

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
