package conformance

import (
	"regexp"
	"sync"
)

// A lazy is a value that is made when it is first asked for: the program that links
// this package starts often and runs it seldom, so nothing here is made at start.
type lazy[T any] struct {
	make  func() T
	once  sync.Once
	value T
}

func (l *lazy[T]) get() T {
	l.once.Do(func() { l.value = l.make() })
	return l.value
}

// A pattern is a regular expression that is compiled when it is first asked for.
type pattern struct {
	text     string
	once     sync.Once
	compiled *regexp.Regexp
}

func (p *pattern) get() *regexp.Regexp {
	p.once.Do(func() { p.compiled = regexp.MustCompile(p.text) })
	return p.compiled
}
