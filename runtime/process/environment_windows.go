package process

import (
	"os"
	"path/filepath"
)

// look does not tell who may write: Windows keeps the matter in access control
// lists, which the package does not read.
func look(path string) sighting {
	info, err := os.Lstat(path)
	if err != nil {
		return sighting{writability: missing}
	}
	return sighting{writability: closed, link: info.Mode()&(os.ModeSymlink|os.ModeIrregular) != 0}
}

// within reports whether path is dir or lies in it, whatever the case.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
