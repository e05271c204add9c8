package archive

import (
	"os"
	"strings"
)

// Ignores reports whether Pack and CopyDir leave the file at path out of dir, itself
// or with a directory above it. The file need not exist; path has "/" between its
// components.
func Ignores(dir *os.Root, path string, o Options) (bool, error) {
	l, err := readIgnore(dir, o)
	if err != nil {
		return false, err
	}
	for i := range path {
		if path[i] == '/' && l.skip(path[:i], true) {
			return true, nil
		}
	}
	return l.skip(strings.TrimSuffix(path, "/"), false), nil
}
