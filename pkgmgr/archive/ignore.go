package archive

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// IgnoreFile is the file at a directory's root that lists what Pack and CopyDir
// leave out. It is itself left out.
const IgnoreFile = ".switchyardignore"

// An ignoreList decides what of a directory is left out.
type ignoreList struct {
	patterns []ignorePattern
}

// readIgnore reads the ignore file below root, if there is one.
func readIgnore(root *os.Root, o Options) (*ignoreList, error) {
	l := &ignoreList{}
	f, err := root.OpenFile(IgnoreFile, os.O_RDONLY|openFlags, 0)
	if os.IsNotExist(err) {
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	most := o.limits().IgnoreFile
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, refuse(IgnoreFile, RuleIgnoreFile, "it has more than %d bytes", most)
	}
	l.patterns, err = parseIgnore(string(data))
	return l, err
}

// skip reports whether the file or directory at path is left out. What lies
// below a directory that is left out is never asked for.
func (l *ignoreList) skip(path string, dir bool) bool {
	_, name := splitPath(path)
	if isLitter(name) || path == IgnoreFile {
		return true
	}
	var parts []string
	if len(l.patterns) > 0 {
		parts = strings.Split(path, "/")
	}
	for i := len(l.patterns) - 1; i >= 0; i-- {
		if p := &l.patterns[i]; (dir || !p.dirOnly) && p.matches(parts) {
			return !p.negated
		}
	}
	return false
}

// isLitter reports names that never belong to a package, as files or as
// directories: version control's own, and what systems leave behind.
func isLitter(name string) bool {
	if name == "CVS" || strings.HasPrefix(name, "._") {
		return true
	}
	for _, l := range [...]string{
		".git", ".hg", ".svn", ".jj", ".bzr", "_darcs",
		".ds_store", "thumbs.db", "desktop.ini",
	} {
		if equalASCII(name, l) {
			return true
		}
	}
	return false
}

// An ignorePattern is one line of the ignore file.
type ignorePattern struct {
	negated bool
	dirOnly bool
	parts   []globPart // one for each component of the path
}

// A globPart matches one component, or any number of them if deep.
type globPart struct {
	deep  bool
	runes []globRune
}

// A globRune matches one character, or any number of them if many.
type globRune struct {
	many    bool
	negated bool
	ranges  [][2]rune // none, with negated: any character
}

// parseIgnore reads the subset of gitignore's patterns that docs/packages.md
// describes. A line that means nothing is refused, not skipped: what its writer
// wanted to keep back would be shipped.
func parseIgnore(text string) ([]ignorePattern, error) {
	var patterns []ignorePattern
	if !utf8.ValidString(text) {
		return nil, refuse(IgnoreFile, RuleIgnoreFile, "it is not UTF-8")
	}
	number := 0
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		number++
		line = strings.TrimRight(line, "\r\n")
		for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
			line = line[:len(line)-1]
		}
		if line == "" || line[0] == '#' {
			continue
		}
		p, why := parsePattern(line)
		if why != "" {
			return nil, refuse(IgnoreFile, RuleIgnoreFile, "line %d: %s", number, why)
		}
		patterns = append(patterns, p)
	}
	return patterns, nil
}

func parsePattern(line string) (p ignorePattern, why string) {
	line, p.negated = strings.CutPrefix(line, "!")
	line, p.dirOnly = strings.CutSuffix(line, "/")
	anchored := strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return p, "there is no pattern"
	}
	if !anchored {
		p.parts = append(p.parts, globPart{deep: true})
	}
	for part := range strings.SplitSeq(line, "/") {
		switch part {
		case "":
			return p, "the pattern has an empty component"
		case ".", "..":
			return p, `the pattern has a "." or ".." component, which no path has`
		case "**":
			p.parts = append(p.parts, globPart{deep: true})
			continue
		}
		g, why := parseGlob(part)
		if why != "" {
			return p, why
		}
		p.parts = append(p.parts, globPart{runes: g})
	}
	return p, ""
}

func parseGlob(s string) (g []globRune, why string) {
	r := []rune(s)
	literal := func(c rune) globRune { return globRune{ranges: [][2]rune{{c, c}}} }
	for i := 0; i < len(r); i++ {
		switch r[i] {
		case '*':
			if len(g) == 0 || !g[len(g)-1].many {
				g = append(g, globRune{many: true})
			}
		case '?':
			g = append(g, globRune{negated: true})
		case '\\':
			if i++; i == len(r) {
				return nil, "the pattern ends in a backslash"
			}
			g = append(g, literal(r[i]))
		case '[':
			class, end := parseClass(r, i+1)
			if end < 0 {
				return nil, "the pattern has a [ that no ] closes, or an empty or falling range"
			}
			g = append(g, class)
			i = end
		default:
			g = append(g, literal(r[i]))
		}
	}
	return g, ""
}

// parseClass reads a class from behind its bracket and returns the index of the
// bracket that ends it, or -1.
func parseClass(r []rune, i int) (class globRune, end int) {
	if i < len(r) && (r[i] == '!' || r[i] == '^') {
		class.negated = true
		i++
	}
	one := func() (rune, bool) {
		if i < len(r) && r[i] == '\\' {
			i++
		}
		if i >= len(r) {
			return 0, false
		}
		i++
		return r[i-1], true
	}
	for first := true; i < len(r) && (r[i] != ']' || first); first = false {
		low, ok := one()
		high := low
		if ok && i+1 < len(r) && r[i] == '-' && r[i+1] != ']' {
			i++
			high, ok = one()
		}
		if !ok || high < low {
			return class, -1
		}
		class.ranges = append(class.ranges, [2]rune{low, high})
	}
	if i >= len(r) {
		return class, -1
	}
	return class, i
}

// matches reports whether the pattern covers the path. A part that matches any
// number of components is retried from the last one only, so that the time is
// at most the product of both lengths.
func (p *ignorePattern) matches(path []string) bool {
	at, part := 0, 0
	retryPart, retryAt := -1, 0
	for at < len(path) {
		switch {
		case part < len(p.parts) && p.parts[part].deep:
			if part == len(p.parts)-1 {
				return true // "dir/**" is what lies below dir
			}
			retryPart, retryAt = part, at
			part++
		case part < len(p.parts) && matchGlob(p.parts[part].runes, path[at]):
			at++
			part++
		case retryPart >= 0:
			retryAt++
			at, part = retryAt, retryPart+1
		default:
			return false
		}
	}
	return part == len(p.parts)
}

// matchGlob matches one component in the same way.
func matchGlob(g []globRune, s string) bool {
	r := []rune(s)
	at, tok := 0, 0
	retryTok, retryAt := -1, 0
	for at < len(r) {
		switch {
		case tok < len(g) && g[tok].many:
			retryTok, retryAt = tok, at
			tok++
		case tok < len(g) && g[tok].matches(r[at]):
			at++
			tok++
		case retryTok >= 0:
			retryAt++
			at, tok = retryAt, retryTok+1
		default:
			return false
		}
	}
	for tok < len(g) && g[tok].many {
		tok++
	}
	return tok == len(g)
}

func (g *globRune) matches(r rune) bool {
	for _, within := range g.ranges {
		if r >= within[0] && r <= within[1] {
			return !g.negated
		}
	}
	return g.negated
}
