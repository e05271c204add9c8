package subset

import (
	"maps"
	"slices"
	"strings"
)

// link resolves the references, refuses circles, and bounds how many subschemas one
// value meets.
func (b *builder) link() {
	for _, r := range b.refs {
		to := b.resolve(r)
		if to == nil {
			continue
		}
		r.from.allOf = append([]*node{to}, r.from.allOf...)
	}
	costs := map[*node]int{}
	for _, at := range slices.Sorted(maps.Keys(b.nodes)) {
		before := len(b.problems)
		if n := b.nodes[at]; b.cost(n, costs) > MaxInPlace && len(b.problems) == before && !b.expensive(n, costs) {
			b.add(at, CodeLimit, "one value meets more than %d subschemas here, through references and alternatives", MaxInPlace)
		}
	}
}

// expensive reports whether a part of n is beyond the bound already, and so told.
func (b *builder) expensive(n *node, costs map[*node]int) bool {
	return slices.ContainsFunc(n.inPlace(), func(m *node) bool { return costs[m] > MaxInPlace })
}

// cost returns how many subschemas a value meets that meets n. A node that is being
// counted, and is met again, is part of a circle.
func (b *builder) cost(n *node, costs map[*node]int) int {
	const open = -1
	switch c := costs[n]; {
	case c == open:
		b.add(n.pointer, CodeRef, "refers to itself without going down into the value")
		costs[n] = 1
		return 1
	case c > 0:
		return c
	}
	costs[n] = open
	sum := 1
	for _, m := range n.inPlace() {
		sum += b.cost(m, costs)
	}
	costs[n] = min(sum, MaxInPlace+1)
	return costs[n]
}

// resolve returns the node that a reference means, or nil after telling why not.
func (b *builder) resolve(r reference) *node {
	at := r.at + "/$ref"
	uri, fragment, _ := strings.Cut(r.target, "#")
	base := r.base
	if uri != "" {
		p, known := b.resources[uri]
		if !known {
			b.add(at, CodeRef, "refers to what is not in this document; bundle it under $defs with its $id")
			return nil
		}
		base = p
	}
	if fragment == "" {
		if r.target == "" {
			b.add(at, CodeRef, `must not be empty; the whole document is "#"`)
			return nil
		}
		return b.nodes[base]
	}
	name, ok := strings.CutPrefix(fragment, "/$defs/")
	if !ok || !isDefinition(name) {
		b.add(at, CodeRef, `must be "#", "#/$defs/NAME", an $id of this document, or an $id with "#/$defs/NAME"`)
		return nil
	}
	target := base + "/$defs/" + name
	n := b.nodes[target]
	if n == nil {
		b.add(at, CodeRef, "refers to nothing: there is no %s", target)
		return nil
	}
	for id, p := range b.resources {
		if p == target {
			b.add(at, CodeRef, "what has an $id is referred to by it: %q", id)
			return nil
		}
	}
	return n
}

// defaults holds each default to its own schema.
func (b *builder) defaults() {
	for _, at := range slices.Sorted(maps.Keys(b.nodes)) {
		n := b.nodes[at]
		if n.initial == nil {
			continue
		}
		if problems := (&Schema{root: n}).Validate(n.initial); problems != nil {
			b.add(at+"/default", CodeDefault, "is refused by its own schema: %s", problems[0])
		}
	}
}
