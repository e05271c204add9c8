// Package scaffold holds the plugin project that a new author starts from, and
// writes it under the author's names. The project stands in this directory as a
// plugin that is compiled and tested like any other; only its names are
// replaced.
//
// It overwrites nothing, and runs no tool on what it wrote.
package scaffold

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// The files are named one by one, so that nothing that a build or an editor
// leaves beside them gets into a new project.
//
//go:embed starter-go/main.go starter-go/main_test.go starter-go/plugin.json starter-go/go.mod.tmpl
//go:embed starter-go/Makefile starter-go/README.md starter-go/.gitignore starter-go/.switchyardignore
var starters embed.FS

// The names in the starters that stand for the author's.
const (
	starterID     = "starter-go"
	starterName   = "Starter"
	starterModule = "starter-go-module"
	starterSDK    = "github.com/switchyard-plugins/switchyard v0.0.0"
)

// SDKModule is the module that a Go plugin imports.
const SDKModule = "github.com/switchyard-plugins/switchyard"

// A Project describes what is to be written.
type Project struct {
	Language string // one of Languages
	ID       string // the plugin's id
	Name     string // its name for people
	Module   string // the Go module's path
	// SDK is the directory of this module's source, absolute, for a project that
	// uses it instead of a released version; "" for the released one.
	SDK string
	// Version is the released version of the module that the project needs; it
	// does not matter where SDK is given.
	Version string
}

// Languages are the languages that there is a starter for.
func Languages() []string { return []string{"go"} }

// An Exists says which file would have been overwritten.
type Exists struct{ Path string }

func (e *Exists) Error() string { return e.Path + " exists already" }

// Write writes the project into dir, which is made if need be, and returns the
// sorted paths of its files relative to dir. If one of them exists, the error
// is an *Exists and nothing is written. What a failed Write has written before
// it failed is removed again.
func Write(dir string, p Project) ([]string, error) {
	files, err := p.render()
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		switch _, err := os.Lstat(filepath.Join(dir, f.name)); {
		case err == nil:
			return nil, &Exists{Path: filepath.Join(dir, f.name)}
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	var names []string
	for _, f := range files {
		if err := create(filepath.Join(dir, f.name), f.text); err != nil {
			for _, n := range names {
				os.Remove(filepath.Join(dir, n))
			}
			return nil, err
		}
		names = append(names, f.name)
	}
	return names, nil
}

type file struct{ name, text string }

// render returns the project's files, sorted by name.
func (p Project) render() ([]file, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	entries, err := starters.ReadDir("starter-" + p.Language)
	if err != nil {
		return nil, err
	}
	var files []file
	for _, e := range entries {
		text, err := starters.ReadFile(path.Join("starter-"+p.Language, e.Name()))
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(e.Name(), ".tmpl")
		files = append(files, file{name: name, text: p.fill(name, string(text))})
	}
	return files, nil
}

func (p Project) check() error {
	if !slices.Contains(Languages(), p.Language) {
		return fmt.Errorf("no starter for the language %q", p.Language)
	}
	m := manifest.Manifest{
		SchemaVersion: manifest.SchemaVersion, ID: p.ID, Name: p.Name, Version: "0.1.0", ProtocolVersion: manifest.Protocol,
		Executable: "bin/" + p.ID, Arguments: []string{},
		Capabilities: manifest.Capabilities, RequestedScopes: manifest.Scopes,
	}
	if err := m.Validate(); err != nil {
		return err
	}
	odd := func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/", r)
	}
	if p.Module == "" || strings.ContainsFunc(p.Module, odd) || !fs.ValidPath(p.Module) {
		return fmt.Errorf("%q is not the path of a Go module", p.Module)
	}
	switch {
	case p.SDK != "" && !filepath.IsAbs(p.SDK):
		return fmt.Errorf("the directory of the SDK must be absolute, %q is not", p.SDK)
	case p.SDK == "" && (!strings.HasPrefix(p.Version, "v") || strings.ContainsAny(p.Version, " \t\r\n\"")):
		return fmt.Errorf("%q is not a version of the SDK", p.Version)
	}
	return nil
}

// fill puts the author's names into one file.
func (p Project) fill(name, text string) string {
	shown := p.Name
	if name == manifest.FileName {
		// check has refused control characters and invalid UTF-8.
		shown = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(shown)
	}
	sdk := starterSDK
	if p.SDK == "" {
		sdk = SDKModule + " " + p.Version
	}
	text = strings.NewReplacer(starterModule, p.Module, starterSDK, sdk, starterID, p.ID, starterName, shown).Replace(text)
	if name == "go.mod" && p.SDK != "" {
		text += "\nreplace " + SDKModule + " => " + strconv.Quote(p.SDK) + "\n"
	}
	return text
}

func create(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(text); err != nil {
		f.Close()
		os.Remove(path)
		return err
	}
	return f.Close()
}
