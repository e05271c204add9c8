package pkgmgr

import "strings"

// near returns the names that a person may have meant by name: at most three,
// within an edit distance of two, or sharing a prefix of at least three bytes.
func near(name string, names []string) []string {
	var found []string
	for _, n := range names {
		prefix := len(name) >= 3 && strings.HasPrefix(n, name)
		if n != name && (prefix || editDistance(name, n) <= 2) {
			found = append(found, n)
		}
		if len(found) == 3 {
			break
		}
	}
	return found
}

// editDistance is the Levenshtein distance of two short names, in bytes.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j]+1, row[j+1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
