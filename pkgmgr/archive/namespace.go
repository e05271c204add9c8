package archive

import (
	"strings"
	"unicode/utf8"
)

// A namespace collects the paths of one archive or tree, refuses those that
// cannot stand beside each other, holds the bounds on paths, entries and sizes,
// and finds out whether one top directory wraps everything.
//
// A tar tells its entries one by one, so a wrapped one is known for what it is
// only at its end. Paths are therefore taken as given, and bounds that hold
// only without the wrapping directory are settled by finish.
type namespace struct {
	limits   Limits
	nodes    map[string]node // by folded path
	root     bool            // the root itself was listed
	parent   string          // whose ancestors and itself are known directories
	top      string          // first component of the first file
	files    int
	atTop    bool // top holds rootFile
	single   bool // every file so far is below top
	unpacked int64
	over     []*overrun
}

type node struct {
	path   string
	dir    bool
	listed bool // named by an entry, not only implied by a longer path
}

// An overrun is a path that is within bounds only below its first component.
type overrun struct {
	top     string
	refusal *Refusal
}

func newNamespace(l Limits) *namespace {
	return &namespace{limits: l, nodes: map[string]node{}, single: true}
}

// add takes in one entry and returns its path as it is to be created; "" stands
// for the root. The size is that of a file's contents.
func (n *namespace) add(raw string, dir bool, size int64) (string, *Refusal) {
	if len(raw) > 2*n.limits.PathBytes+4 {
		return "", refuse(abbreviate(raw), RulePathLength, "the path has %d bytes, at most %d are allowed", len(raw), n.limits.PathBytes)
	}
	path, r := cleanPath(raw, dir)
	if r != nil {
		return "", r
	}
	if path == "" {
		if n.root {
			return "", refuse(raw, RuleDuplicate, "the root directory is listed twice")
		}
		n.root = true
		return "", nil
	}
	if r := n.bounds(raw, path); r != nil {
		return "", r
	}
	if r := n.place(raw, path, dir); r != nil {
		return "", r
	}
	if !dir {
		n.noteFile(path)
		// Subtracting cannot overflow: both are within the bound.
		if size > n.limits.Unpacked-n.unpacked {
			return "", refuse(raw, RuleUnpackedSize, "the files have more than %d bytes together", n.limits.Unpacked)
		}
		n.unpacked += size
	}
	if !n.single && len(n.over) > 0 {
		return "", n.over[0].refusal
	}
	extra := 0
	if n.single {
		extra = 1 // the wrapping directory is no entry of the package
	}
	if len(n.nodes) > n.limits.Entries+extra {
		return "", n.tooMany(raw)
	}
	return path, nil
}

func (n *namespace) tooMany(raw string) *Refusal {
	return refuse(raw, RuleEntries, "more than %d files and directories", n.limits.Entries)
}

// bounds judges a path's length and depth, and puts off the judgement where a
// wrapping directory would change it.
func (n *namespace) bounds(raw, path string) *Refusal {
	top, below, _ := strings.Cut(path, "/")
	r := n.judge(raw, path)
	if r == nil {
		return nil
	}
	if below == "" || len(top) > n.limits.PathBytes || n.judge(raw, below) != nil {
		return r
	}
	n.over = append(n.over, &overrun{top: top, refusal: r})
	return nil
}

func (n *namespace) judge(raw, path string) *Refusal {
	if len(path) > n.limits.PathBytes {
		return refuse(raw, RulePathLength, "the path has %d bytes, at most %d are allowed", len(path), n.limits.PathBytes)
	}
	if depth := strings.Count(path, "/") + 1; depth > n.limits.Depth {
		return refuse(raw, RuleDepth, "the path has %d components, at most %d are allowed", depth, n.limits.Depth)
	}
	return nil
}

// place registers a path and the directories above it.
func (n *namespace) place(raw, path string, dir bool) *Refusal {
	folded := foldPath(path)
	parent, _ := splitPath(path)
	if parent != n.parent {
		for i, j := 0, 0; ; i, j = i+1, j+1 {
			pi, fj := strings.IndexByte(path[i:], '/'), strings.IndexByte(folded[j:], '/')
			if pi < 0 {
				break
			}
			i, j = i+pi, j+fj
			above, known := n.nodes[folded[:j]]
			switch {
			case !known:
				n.nodes[folded[:j]] = node{path: path[:i], dir: true}
			case above.path != path[:i]:
				return collide(raw, path[:i], above.path)
			case !above.dir:
				return refuse(raw, RuleUnderFile, "\"%s\" is a file", above.path)
			}
		}
		n.parent = parent
	}
	old, known := n.nodes[folded]
	switch {
	case !known:
		n.nodes[folded] = node{path: path, dir: dir, listed: true}
	case old.path != path:
		return collide(raw, path, old.path)
	case old.dir != dir:
		return refuse(raw, RuleUnderFile, "the path is a file and a directory")
	case old.listed:
		return refuse(raw, RuleDuplicate, "the path is listed twice")
	default:
		old.listed = true
		n.nodes[folded] = old
	}
	return nil
}

func collide(raw, path, other string) *Refusal {
	return refuse(raw, RuleCollision, "\"%s\" and \"%s\" are one name to some file systems", path, other)
}

// foldPath folds each component; the slashes stay where they are.
func foldPath(path string) string {
	plain := true
	for i := range len(path) {
		plain = plain && path[i] < utf8.RuneSelf && (path[i] < 'A' || path[i] > 'Z')
	}
	if plain {
		return path
	}
	parts := strings.Split(path, "/")
	for i, p := range parts {
		parts[i] = foldComponent(p)
	}
	return strings.Join(parts, "/")
}

// noteFile keeps track of whether everything is below one directory.
func (n *namespace) noteFile(path string) {
	top, below, nested := strings.Cut(path, "/")
	if n.files == 0 {
		n.top = top
	}
	n.files++
	n.single = n.single && nested && top == n.top
	n.atTop = n.atTop || nested && below == rootFile
}

// finish says which directory wraps the package: the one that every file is
// below and that holds plugin.json itself. It settles what add had put off.
func (n *namespace) finish() (top string, err error) {
	if n.files == 0 {
		return "", refuse("", RuleEmpty, "there is no file")
	}
	entries := len(n.nodes)
	if n.single && n.atTop {
		top = n.top
		entries--
	}
	for _, o := range n.over {
		if o.top != top {
			return "", o.refusal
		}
	}
	if entries > n.limits.Entries {
		return "", n.tooMany("")
	}
	return top, nil
}

// abbreviate keeps a name that is too long to be true printable.
func abbreviate(s string) string {
	const keep = 80
	if len(s) <= 2*keep {
		return s
	}
	return s[:keep] + "..." + s[len(s)-keep:]
}
