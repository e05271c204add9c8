package process

import (
	"path/filepath"
	"runtime"
	"strings"
)

// ProtocolVariable is the environment variable that names the protocol a child
// is to speak.
const ProtocolVariable = "SWITCHYARD_PLUGIN_PROTOCOL"

// Environment builds a child's whole environment, except for the mark: the
// protocol and, where host knows them, PATH, TMPDIR, LANG and, on Windows,
// SYSTEMROOT. Nothing else of the host's environment is handed on.
//
// PATH loses every entry through which somebody else, or the files that the
// child works on, could supply a program: relative entries, entries in one of
// the given directories (the project, the package), and entries that other
// users can write or could create. An entry need not exist. If none is left,
// there is no PATH.
func Environment(host func(name string) (string, bool), protocol string, directories ...string) []string {
	env := []string{ProtocolVariable + "=" + protocol}
	if path, ok := host("PATH"); ok {
		if path = safePath(path, directories); path != "" {
			env = append(env, "PATH="+path)
		}
	}
	names := []string{"TMPDIR", "LANG"}
	if runtime.GOOS == "windows" {
		names = append(names, "SYSTEMROOT")
	}
	for _, name := range names {
		if value, ok := host(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

func safePath(path string, directories []string) string {
	seen := make(sightings)
	excluded := make([]string, 0, 2*len(directories))
	for _, dir := range directories {
		if dir == "" {
			continue
		}
		excluded = append(excluded, filepath.Clean(dir))
		if real, linked := seen.resolve(dir); linked {
			excluded = append(excluded, real)
		}
	}
	var kept []string
	for _, entry := range filepath.SplitList(path) {
		if !filepath.IsAbs(entry) || inAny(excluded, entry) || seen.exposed(entry) {
			continue
		}
		if real, linked := seen.resolve(entry); linked && (inAny(excluded, real) || seen.exposed(real)) {
			continue
		}
		kept = append(kept, entry)
	}
	return strings.Join(kept, string(filepath.ListSeparator))
}

func inAny(directories []string, path string) bool {
	path = filepath.Clean(path)
	for _, dir := range directories {
		if within(dir, path) {
			return true
		}
	}
	return false
}

// writability is what other users may do in a directory.
type writability int

const (
	missing writability = iota + 1 // there is no such directory
	closed                         // nothing
	sticky                         // add entries, but not replace those of others
	open                           // add and replace entries
)

// A sighting is what was found at a path.
type sighting struct {
	writability
	link bool // the path itself is a symbolic link; writability is its target's
}

// sightings remembers them: the entries of a PATH have most of their parents in
// common.
type sightings map[string]sighting

func (seen sightings) at(path string) sighting {
	s, ok := seen[path]
	if !ok {
		s = look(path)
		seen[path] = s
	}
	return s
}

// exposed reports whether others can put a file into dir, or put a directory
// of theirs in its place.
func (seen sightings) exposed(dir string) bool {
	exists := false // dir, or what of it was seen so far
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		w := seen.at(at).writability
		switch {
		case w == open, w == sticky && (!exists || at == filepath.Clean(dir)):
			return true
		case w != missing:
			exists = true
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}

// resolve returns the real path of dir if there is a symbolic link in it.
func (seen sightings) resolve(dir string) (real string, linked bool) {
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		if seen.at(at).link {
			real, err := filepath.EvalSymlinks(dir)
			return real, err == nil
		}
		if at == filepath.Dir(at) {
			return "", false
		}
	}
}
