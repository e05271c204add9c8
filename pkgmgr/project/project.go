// Package project finds a project's root and reads its switchyard.toml: which
// plugins the project wants, from where, in which versions and with which
// scopes. It also edits that file without touching what people wrote around an
// entry.
//
// Files of other users are refused, and so are symbolic links: whoever writes
// switchyard.toml or switchyard.lock decides what the reader of it will run.
// The package trusts nothing and installs nothing; it says what is asked for.
package project

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/lockfile/textfile"
	"github.com/switchyard-plugins/switchyard/verify/policy"
)

// ConfigName is the name of the hand-written file in a project's root.
const ConfigName = "switchyard.toml"

// Errors of this package, for errors.Is. Files that are links, no regular files,
// too large or of other users give the errors of package textfile.
var (
	// ErrNone: no directory of the walk holds a project file.
	ErrNone = errors.New("no " + ConfigName + " or " + lockfile.FileName)
	// ErrForeign: a project file belongs to another user. The error is a
	// *textfile.OwnerError.
	ErrForeign = textfile.ErrForeign
	// ErrVersion: switchyard.toml is of a version that is not known here.
	ErrVersion = errors.New("version of " + ConfigName + " not supported")
	// ErrNotWanted: switchyard.toml has no plugin of that id.
	ErrNotWanted = errors.New("not in " + ConfigName)
)

// A Project is a directory that holds switchyard.toml, switchyard.lock or both.
type Project struct {
	Root      string // absolute, symbolic links resolved
	HasConfig bool   // switchyard.toml exists
	HasLock   bool   // switchyard.lock exists
}

// ConfigPath is where the project's switchyard.toml is or would be.
func (p *Project) ConfigPath() string { return filepath.Join(p.Root, ConfigName) }

// LockPath is where the project's switchyard.lock is or would be.
func (p *Project) LockPath() string { return filepath.Join(p.Root, lockfile.FileName) }

// Find walks up from the directory start to the first one that holds a project
// file. It looks no further than the directory that holds a version control
// store (.git, .hg, .svn or .jj; .git may be a file), the file system's root, or
// the first directory that belongs to neither the user nor root: what lies above
// that one was arranged by somebody else. A project file on the way that is a
// symbolic link or belongs to neither the user nor root is an error, never passed
// over. Without any project file the error matches ErrNone.
func Find(start string) (*Project, error) {
	dir, err := resolve(start)
	if err != nil {
		return nil, err
	}
	for {
		p := &Project{Root: dir}
		if p.HasConfig, err = usable(p.ConfigPath()); err != nil {
			return nil, err
		}
		if p.HasLock, err = usable(p.LockPath()); err != nil {
			return nil, err
		}
		if p.HasConfig || p.HasLock {
			return p, nil
		}
		last, err := isLast(dir)
		if err != nil {
			return nil, err
		}
		if last {
			return nil, fmt.Errorf("%w in %s or above it", ErrNone, start)
		}
		dir = filepath.Dir(dir)
	}
}

// New returns the project that does not exist yet and whose files the next edit
// creates: in the directory of the version control store above start, as Find
// would reach it, else in start itself.
func New(start string) (*Project, error) {
	first, err := resolve(start)
	if err != nil {
		return nil, err
	}
	for dir := first; ; dir = filepath.Dir(dir) {
		if hasStore(dir) {
			return &Project{Root: dir}, nil
		}
		last, err := isLast(dir)
		if err != nil {
			return nil, err
		}
		if last {
			return &Project{Root: first}, nil
		}
	}
}

// VersionControlRoot returns the directory of the version control store that Find's
// walk from start reaches, or "" where there is none.
func VersionControlRoot(start string) (string, error) {
	dir, err := resolve(start)
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if hasStore(dir) {
			return dir, nil
		}
		if last, err := isLast(dir); err != nil || last {
			return "", err
		}
	}
}

// resolve returns start as an absolute path without symbolic links.
func resolve(start string) (string, error) {
	dir, err := filepath.Abs(start)
	if err != nil {
		return "", err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", &fs.PathError{Op: "find project", Path: dir, Err: errors.New("is not a directory")}
	}
	return dir, nil
}

// usable reports whether a project file exists, and refuses one that Read would
// refuse.
func usable(path string) (bool, error) {
	err := textfile.Check(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// isLast reports whether the walk ends with dir.
func isLast(dir string) (bool, error) {
	if filepath.Dir(dir) == dir || hasStore(dir) {
		return true, nil
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return false, err
	}
	return textfile.CheckOwner(dir, info) != nil, nil
}

func hasStore(dir string) bool {
	for _, name := range []string{".git", ".hg", ".svn", ".jj"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// ReadConfig reads switchyard.toml and returns its bytes too. A missing file is
// fs.ErrNotExist; faults of the text are lockfile.Faults.
func (p *Project) ReadConfig() (*Config, []byte, error) {
	text, err := textfile.Read(p.ConfigPath(), MaxConfigBytes)
	if err != nil {
		return nil, nil, err
	}
	c, err := ParseConfig(p.ConfigPath(), text)
	if err != nil {
		return nil, nil, err
	}
	return c, text, nil
}

// Narrowing returns what the project that dir belongs to asks beyond its user's
// policy: nil where it asks for nothing, or where there is no project. Its errors are
// those of Find and ReadConfig.
func Narrowing(dir string) (*policy.Narrowing, error) {
	c, err := configOf(dir)
	if c == nil {
		return nil, err
	}
	return c.Policy, nil
}

// Lists returns where the project that dir belongs to says that revocation lists are
// published: nothing where there is no project. Its errors are those of Narrowing.
func Lists(dir string) ([]ListURL, error) {
	c, err := configOf(dir)
	if c == nil {
		return nil, err
	}
	return c.Lists, nil
}

// configOf reads the switchyard.toml of the project that dir belongs to; nil where there is
// none.
func configOf(dir string) (*Config, error) {
	p, err := Find(dir)
	if errors.Is(err, ErrNone) || err == nil && !p.HasConfig {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c, _, err := p.ReadConfig()
	return c, err
}

// EditConfig replaces switchyard.toml by what edit makes of its text (nil when
// there is no file), durably and in one step; processes that edit at once lose
// nothing. Text that ParseConfig refuses is not written.
func (p *Project) EditConfig(edit func(text []byte) ([]byte, error)) error {
	return textfile.Edit(p.ConfigPath(), MaxConfigBytes, func(old []byte, _ bool) ([]byte, error) {
		text, err := edit(old)
		if err != nil {
			return nil, err
		}
		if _, err := ParseConfig(p.ConfigPath(), text); err != nil {
			return nil, fmt.Errorf("%s was not written: %w", ConfigName, err)
		}
		return text, nil
	})
}
