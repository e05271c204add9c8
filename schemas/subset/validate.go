package subset

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
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
