package commands

import "strings"

// sentences returns what an error says, one element for each of the errors that were
// joined in it. A line feed within one of them is its own and parts nothing.
func sentences(err error) []string {
	joined := joinedIn(err)
	if joined == nil {
		return []string{err.Error()}
	}
	var all []string
	for _, e := range joined.(interface{ Unwrap() []error }).Unwrap() {
		all = append(all, sentences(e)...)
	}
	before, after, _ := strings.Cut(err.Error(), joined.Error())
	all[0] = before + all[0]
	all[len(all)-1] += after
	return all
}

// joinedIn finds the first error in err that is others, each on a line of its own; nil
// if there is none.
func joinedIn(err error) error {
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil && strings.Contains(err.Error(), inner.Error()) {
			return joinedIn(inner)
		}
	case interface{ Unwrap() []error }:
		parts := e.Unwrap()
		lines := make([]string, len(parts))
		for i, p := range parts {
			lines[i] = p.Error()
		}
		if len(parts) > 1 && err.Error() == strings.Join(lines, "\n") {
			return err
		}
		for _, p := range parts {
			if j := joinedIn(p); j != nil && strings.Contains(err.Error(), j.Error()) {
				return j
			}
		}
	}
	return nil
}
