// Package schemas carries the JSON Schemas (2020-12) of the documents that
// people and programs write and read: plugin manifests, the session protocol's
// messages, errors and receipts, what a package's own schemas may be,
// switchyard.toml as editors see it, and what commands print under --json.
//
// It hands out text and validates nothing; strict reading is the work of
// packages ijson and manifest, and of the reader of each format, which know
// rules that a schema cannot state. Each document stands alone: its $id is
// urn:switchyard:schemas: and its file's name (and, of the session protocol's, a
// version), it refers to nothing outside of itself, and what it shares with another
// is embedded in it with its own $id. The embedded files cost nothing until they are read.
package schemas

import (
	"embed"
	"io/fs"
	"slices"
	"strings"
)

// Suffix ends the name of every schema.
const Suffix = ".schema.json"

// FS holds every schema: those of formats at its root, those of single commands
// in the directory cli.
//
//go:embed *.schema.json cli/*.schema.json
var FS embed.FS

// Get returns a copy of the schema with the given path in FS, such as
// "call-manifest.schema.json". Of an unknown one it says fs.ErrNotExist.
func Get(name string) ([]byte, error) {
	if !strings.HasSuffix(name, Suffix) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return FS.ReadFile(name)
}

// Names returns the paths of all schemas in FS, sorted.
func Names() []string {
	var names []string
	err := fs.WalkDir(FS, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		panic(err) // what is embedded can be listed
	}
	slices.Sort(names) // a directory is listed before the file of its name
	return names
}
