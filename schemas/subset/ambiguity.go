package subset

import (
	"fmt"
	"math/bits"
)

// A set of positions.
type set []uint64

func (s set) add(i int)      { s[i>>6] |= 1 << (i & 63) }
func (s set) has(i int) bool { return s[i>>6]&(1<<(i&63)) != 0 }
func (s set) join(o set) {
	for i, w := range o {
		s[i] |= w
	}
}

func (s set) meets(o set) bool {
	for i, w := range o {
		if s[i]&w != 0 {
			return true
		}
	}
	return false
}

func (s set) each(f func(i int)) {
	for w, word := range s {
		for ; word != 0; word &= word - 1 {
			f(w<<6 | bits.TrailingZeros64(word))
		}
	}
}

// An automaton is the position automaton of an expression: position i reads one
// character of its class and may be followed by those in follow[i].
type automaton struct {
	words   int // of a set
	class   []int
	at      []int
	follow  []set
	classes []class
	known   map[string]int
	twice   []int // what can be followed by the same position for two reasons
}

// A part is what an expression adds to the automaton.
type part struct {
	first, last set
	empty       bool
}

func (a *automaton) set() set { return make(set, a.words) }

func (a *automaton) add(e *expression) part {
	switch e.op {
	case 'c':
		key := fmt.Sprint(e.class)
		id, ok := a.known[key]
		if !ok {
			id = len(a.classes)
			a.known[key] = id
			a.classes = append(a.classes, e.class)
		}
		i := len(a.class)
		a.class, a.at, a.follow = append(a.class, id), append(a.at, e.at), append(a.follow, a.set())
		p := part{first: a.set(), last: a.set()}
		p.first.add(i)
		p.last.add(i)
		return p
	case '.':
		p := part{first: a.set(), last: a.set(), empty: true}
		for _, inner := range e.parts {
			p = a.then(p, a.add(inner))
		}
		return p
	case '|':
		p := part{first: a.set(), last: a.set()}
		for _, inner := range e.parts {
			next := a.add(inner)
			p.first.join(next.first)
			p.last.join(next.last)
			p.empty = p.empty || next.empty
		}
		return p
	}
	return a.repeat(e)
}

// then puts q after p.
func (a *automaton) then(p, q part) part {
	p.last.each(func(i int) { a.follow[i].join(q.first) })
	first, last := a.set(), a.set()
	first.join(p.first)
	last.join(q.last)
	if p.empty {
		first.join(q.first)
	}
	if q.empty {
		last.join(p.last)
	}
	return part{first, last, p.empty && q.empty}
}

// repeat writes a repeat out: e{2,4} as ee(e(e)?)?, e{2,} as ee+.
func (a *automaton) repeat(e *expression) part {
	inner := e.parts[0]
	var p part
	switch {
	case e.max < 0:
		p = a.add(inner)
		p.last.each(func(i int) {
			if a.follow[i].meets(p.first) {
				a.twice = append(a.twice, i)
			}
			a.follow[i].join(p.first)
		})
		p.empty = e.min == 0
		for range e.min - 1 {
			p = a.then(a.add(inner), p)
		}
	default:
		p = part{first: a.set(), last: a.set(), empty: true}
		for i := range e.max {
			p = a.then(a.add(inner), p)
			p.empty = i < e.max-e.min
		}
	}
	return p
}

// checkAmbiguity refuses what an engine that tries one way after the other would need
// long for. Inside a repeat without bound the next character must decide how to go
// on; elsewhere the same characters may be read in at most MaxWays ways. Then no
// engine takes more than the string's length times MaxWays steps.
func checkAmbiguity(e *expression) error {
	a := &automaton{words: (e.size() + 63) / 64, known: map[string]int{}}
	whole := a.add(e)
	n := len(a.class)
	if len(a.classes) > MaxClasses {
		return &patternError{0, fmt.Sprintf("more than %d different characters and classes", MaxClasses)}
	}
	overlap := make([]uint64, len(a.classes))
	for i, c := range a.classes {
		for j, d := range a.classes {
			if c.overlaps(d) {
				overlap[i] |= 1 << j
			}
		}
	}
	reach := make([]set, n)
	for i := range reach {
		reach[i] = a.set()
		reach[i].join(a.follow[i])
	}
	for k := range n {
		for i := range n {
			if reach[i].has(k) {
				reach[i].join(reach[k])
			}
		}
	}
	const undecided = "inside a repeat without bound the next character must decide how to go on; bound the repeat, or make the classes disjoint"
	if len(a.twice) > 0 {
		return &patternError{a.at[a.twice[0]], undecided}
	}
	for p := range n {
		var all, twice, looping uint64 // by class
		a.follow[p].each(func(q int) {
			bit := uint64(1) << a.class[q]
			twice |= all & bit
			all |= bit
			if reach[q].has(p) {
				looping |= bit
			}
		})
		for c := range a.classes {
			if bit := uint64(1) << c; looping&bit != 0 && (twice&bit != 0 || overlap[c]&all&^bit != 0) {
				return &patternError{a.at[p], undecided}
			}
		}
	}
	ways := make([]int, n) // 0: not yet known
	var of func(follow set, from int) int
	of = func(follow set, from int) int {
		sums := make([]int, len(a.classes))
		follow.each(func(q int) {
			if from >= 0 && reach[q].has(from) {
				return // stays in the loop of from
			}
			if ways[q] == 0 {
				loop := []int{q}
				if reach[q].has(q) {
					loop = loop[:0]
					reach[q].each(func(r int) {
						if reach[r].has(q) {
							loop = append(loop, r)
						}
					})
				}
				w := 1
				for _, r := range loop {
					w = max(w, of(a.follow[r], r))
				}
				for _, r := range loop {
					ways[r] = w
				}
			}
			sums[a.class[q]] = min(sums[a.class[q]]+ways[q], MaxWays+1)
		})
		most := 0
		for c := range sums {
			sum := 0
			for d, s := range sums {
				if overlap[c]&(1<<d) != 0 {
					sum += s
				}
			}
			most = max(most, sum)
		}
		return min(most, MaxWays+1)
	}
	if of(whole.first, -1) > MaxWays {
		return &patternError{0, fmt.Sprintf("the same characters can be read in more than %d ways; make the classes that follow each other disjoint", MaxWays)}
	}
	return nil
}
