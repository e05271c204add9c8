package conformance

import (
	"fmt"
	"slices"
	"strings"
)

// An Expectations is a list of cases that are expected to fail.
type Expectations []string

// ReadExpectations reads a list: a case's name a line; "#" begins a comment. A
// name that is no case's is an error, so that the list cannot outlive a case.
func ReadExpectations(file, text string, list []*Case) (Expectations, error) {
	var names Expectations
	number := 0
	for line := range strings.Lines(text) {
		number++
		line, _, _ = strings.Cut(line, "#")
		name := strings.TrimSpace(line)
		switch {
		case name == "":
		case !slices.ContainsFunc(list, func(c *Case) bool { return c.Name == name }):
			return nil, &ParseError{file, number, fmt.Sprintf("no case is called %q", name)}
		case slices.Contains(names, name):
			return nil, &ParseError{file, number, fmt.Sprintf("%s is listed twice", name)}
		default:
			names = append(names, name)
		}
	}
	return names, nil
}

// Compare returns the results that failed although nobody expected it, and the
// names of those that were expected to fail and passed.
func (e Expectations) Compare(results []Result) (failed []Result, stale []string) {
	for _, r := range results {
		switch listed := slices.Contains(e, r.Case.Name); {
		case r.Failure != nil && !listed:
			failed = append(failed, r)
		case r.Failure == nil && listed:
			stale = append(stale, r.Case.Name)
		}
	}
	return failed, stale
}
