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
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
	"github.com/switchyard-plugins/switchyard/sdk/python"
)

// The files are named one by one, so that nothing that a build or an editor
// leaves beside them gets into a new project.
//
//go:embed starter-go/main.go starter-go/main_test.go starter-go/plugin.json starter-go/go.mod.tmpl
//go:embed starter-go/Makefile starter-go/README.md starter-go/.gitignore starter-go/.switchyardignore
//go:embed starter-python/word_tools.py starter-python/test_word_tools.py starter-python/plugin.json starter-python/schemas/*.json
//go:embed starter-python/Makefile starter-python/README.md starter-python/.gitignore starter-python/.switchyardignore
var starters embed.FS

// The names in the starters that stand for the author's.
const (
	starterID     = "starter-go"
	starterPython = "com.example.starter-python"
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
	// SDK and Version are for Go; a Python project contains its SDK. SDK is the directory of this module's source, absolute, for a project that
	// uses it instead of a released version; "" for the released one.
	SDK string
	// Version is the released version of the module that the project needs; it
	// does not matter where SDK is given.
	Version string
}

// Languages are the languages that there is a starter for.
func Languages() []string { return []string{Go, Python} }

// The languages.
const (
	Go     = "go"     // a plugin of the call protocol
	Python = "python" // a plugin of the session protocol
)

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
			for _, n := range slices.Backward(names) {
				os.Remove(filepath.Join(dir, n))
				if below := filepath.Dir(n); below != "." {
					os.Remove(filepath.Join(dir, below)) // if it is empty then
				}
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
	root, err := fs.Sub(starters, "starter-"+p.Language)
	if err != nil {
		return nil, err
	}
	files, err := p.read(root)
	if err != nil || p.Language != Python {
		return files, err
	}
	sdk, err := fs.Sub(python.Files, ".")
	if err != nil {
		return nil, err
	}
	vendored, err := Project{}.read(sdk)
	if err != nil {
		return nil, err
	}
	files = append(files, vendored...)
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files, nil
}

// read returns the files of a tree with the author's names in them; a project
// without an id leaves them as they are.
func (p Project) read(root fs.FS) ([]file, error) {
	var files []file
	err := fs.WalkDir(root, ".", func(at string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(root, at)
		if err != nil {
			return err
		}
		name, filled := strings.TrimSuffix(at, ".tmpl"), string(text)
		if p.ID != "" {
			if filled, err = p.fill(name, filled); err != nil {
				return err
			}
		}
		files = append(files, file{name, filled})
		return nil
	})
	return files, err
}

func (p Project) check() error {
	if !slices.Contains(Languages(), p.Language) {
		return fmt.Errorf("no starter for the language %q", p.Language)
	}
	if p.Language == Python {
		return p.checkPython()
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

// checkPython holds the names to the rules of the session manifest.
func (p Project) checkPython() error {
	if err := sessionmanifest.CheckID(p.ID); err != nil {
		return fmt.Errorf("the id %q %w", p.ID, err)
	}
	if n := utf8.RuneCountInString(p.Name); !utf8.ValidString(p.Name) || n < 1 || n > sessionmanifest.MaxDisplayName || strings.TrimSpace(p.Name) == "" || strings.ContainsFunc(p.Name, unicode.IsControl) {
		return fmt.Errorf("the name must have 1 to %d characters, and no control characters", sessionmanifest.MaxDisplayName)
	}
	return nil
}

// fill puts the author's names into one file.
func (p Project) fill(name, text string) (string, error) {
	shown := p.Name
	if name == manifest.FileName {
		// check has refused control characters and invalid UTF-8.
		shown = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(shown)
	}
	if p.Language == Python {
		text = strings.NewReplacer(starterPython, p.ID, "starter-python", p.ID, starterName, shown).Replace(text)
		if name == manifest.FileName {
			return withDigest(text)
		}
		return text, nil
	}
	sdk := starterSDK
	if p.SDK == "" {
		sdk = SDKModule + " " + p.Version
	}
	text = strings.NewReplacer(starterModule, p.Module, starterSDK, sdk, starterID, p.ID, starterName, shown).Replace(text)
	if name == "go.mod" && p.SDK != "" {
		text += "\nreplace " + SDKModule + " => " + strconv.Quote(p.SDK) + "\n"
	}
	return text, nil
}

// withDigest states the digest of a session manifest that has the author's names in it.
func withDigest(text string) (string, error) {
	d, err := digest.SessionManifest([]byte(text))
	if err != nil {
		return "", err
	}
	stated := regexp.MustCompile(`("manifestDigest": ")[^"]*"`)
	return stated.ReplaceAllString(text, "${1}"+string(d)+`"`), nil
}

func create(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
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
