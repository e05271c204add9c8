package redact

import (
	"encoding/json"
	"slices"
	"strings"
)

// minPart is how short a line of a secret of many lines may be to be masked by itself.
const minPart = 8

// Values masks secrets that are known, wherever they stand. A nil *Values masks nothing.
type Values struct {
	replacer *strings.Replacer
	longest  int
}

// NewValues returns what masks the secrets: each as it is, as a JSON string spells it, and,
// where it has several lines, each line that is long enough to tell something.
func NewValues(secrets []string) *Values {
	var all []string
	for _, s := range secrets {
		all = append(all, s)
		if quoted, err := json.Marshal(s); err == nil {
			all = append(all, string(quoted[1:len(quoted)-1]))
		}
		for part := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == '\n' || r == '\r' }) {
			if len(part) >= minPart {
				all = append(all, part)
			}
		}
	}
	all = slices.DeleteFunc(all, func(s string) bool { return s == "" })
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) }) // the first that fits is taken
	v := &Values{longest: len(all[0])}
	pairs := make([]string, 0, 2*len(all))
	for _, s := range slices.Compact(all) {
		pairs = append(pairs, s, Mask)
	}
	v.replacer = strings.NewReplacer(pairs...)
	return v
}

// Hide returns s with every secret masked.
func (v *Values) Hide(s string) string {
	if v == nil {
		return s
	}
	return v.replacer.Replace(s)
}

// Longest is the length of the longest text that is masked, in bytes.
func (v *Values) Longest() int {
	if v == nil {
		return 0
	}
	return v.longest
}
