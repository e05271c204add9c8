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
	excluded := make([]string, 0, 2*len(directories))
	for _, dir := range directories {
		if dir == "" {
			continue
		}
		excluded = append(excluded, filepath.Clean(dir))
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			excluded = append(excluded, real)
		}
	}
	known := make(map[string]writability)
	var kept []string
	for _, entry := range filepath.SplitList(path) {
		if !filepath.IsAbs(entry) || inAny(excluded, entry) || exposed(entry, known) {
			continue
		}
		if real, err := filepath.EvalSymlinks(entry); err == nil && real != filepath.Clean(entry) {
			if inAny(excluded, real) || exposed(real, known) {
				continue
			}
		}
		kept = append(kept, entry)
	}
	return strings.Join(kept, string(filepath.ListSeparator))
}

func inAny(directories []string, path string) bool {
	for _, dir := range directories {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
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

// exposed reports whether others can put a file into dir, or put a directory
// of theirs in its place.
func exposed(dir string, known map[string]writability) bool {
	exists := false // dir, or what of it was seen so far
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		w, ok := known[at]
		if !ok {
			w = writableByOthers(at)
			known[at] = w
		}
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
