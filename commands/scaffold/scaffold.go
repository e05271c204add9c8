// Package scaffold writes the files of a new plugin project: a working plugin
// with tests that hold it to the protocol. It overwrites nothing.
package scaffold

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed all:go
var files embed.FS

// A Project describes what is to be written.
type Project struct {
	Language string // one of Languages
	ID       string // the plugin's id
	Name     string // its name for people
	Module   string // the Go module's path
	// SDK is the directory of this project's source, absolute, for a project that
	// uses it instead of the released module; "" for the released one.
	SDK string
	// Version is the released module's version that the project needs.
	Version string
}

// Languages are what Write knows.
func Languages() []string { return []string{"go"} }

// Exists says that a file would be overwritten.
type Exists struct{ Path string }

func (e *Exists) Error() string { return e.Path + " exists already" }

// Write writes the project into dir, which is created, and returns the paths of
// its files relative to dir. A file that exists is *Exists, and nothing is written.
func Write(dir string, p Project) ([]string, error) {
	if !slices.Contains(Languages(), p.Language) {
		return nil, fmt.Errorf("no template for the language %q", p.Language)
	}
	var names []string
	contents := make(map[string]string)
	err := fs.WalkDir(files, p.Language, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		// The templates end in .tmpl so that no Go tool takes them for a module's files.
		target := strings.TrimSuffix(strings.TrimPrefix(name, p.Language+"/"), ".tmpl")
		names = append(names, target)
		contents[target] = p.fill(string(raw))
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(n))); err == nil {
			return nil, &Exists{Path: filepath.Join(dir, filepath.FromSlash(n))}
		}
	}
	for _, n := range names {
		if err := create(dir, n, contents[n]); err != nil {
			return nil, err
		}
	}
	return names, nil
}

func create(dir, name, content string) error {
	target := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(target), 0o777); err != nil {
		return err
	}
	f, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(content); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

const sdkModule = "github.com/switchyard-plugins/switchyard"

func (p Project) fill(text string) string {
	require, replace := p.Version, ""
	if p.SDK != "" {
		require = "v0.0.0"
		replace = fmt.Sprintf("\nreplace %s => %s\n", sdkModule, goModPath(p.SDK))
	}
	return strings.NewReplacer(
		"@ID@", p.ID,
		"@NAME@", jsonEscape(p.Name),
		"@MODULE@", p.Module,
		"@REQUIRE@", sdkModule+" "+require,
		"@REPLACE@\n", replace,
		"@BINARY@", "bin/"+path.Base(p.ID),
	).Replace(text)
}

// goModPath spells a directory for go.mod, which quotes what is not plain.
func goModPath(dir string) string {
	if strings.ContainsAny(dir, " \t\"'`(),") || strings.Contains(dir, "//") {
		return fmt.Sprintf("%q", dir)
	}
	return dir
}

// jsonEscape spells a name inside a JSON string.
func jsonEscape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s)
}
