package pkgmgr

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
)

// The layout below a data directory.
const (
	storeDir      = "store"
	archivesDir   = "store/archives"
	pluginsDir    = "plugins"
	stagingDir    = "staging"
	quarantineDir = "quarantine"
	runningDir    = "running"
	revokedDir    = "revocations"
	mutationLock  = "lock"
)

// Environment variable and directory name of the data directory.
const (
	EnvDataDir = "SWITCHYARD_DATA_DIR"
	dirName    = "switchyard"
)

// ErrNoHome is returned by DataDir when nothing names a data directory.
var ErrNoHome = errors.New("no data directory: HOME is unset and the user database has no home for this user")

// DataDir resolves the data directory: flag, then SWITCHYARD_DATA_DIR, then the
// platform's own place. The result is absolute; nothing is created.
func DataDir(flag string, getenv func(string) string) (string, error) {
	chosen := flag
	if chosen == "" {
		chosen = getenv(EnvDataDir)
	}
	if chosen == "" {
		base, err := platformDataHome(getenv)
		if err != nil {
			return "", err
		}
		chosen = filepath.Join(base, dirName)
	}
	abs, err := filepath.Abs(chosen)
	if err != nil {
		return "", fmt.Errorf("data directory \"%s\": %w", chosen, err)
	}
	return abs, nil
}

// Home is one data directory. It holds no open file and no lock between calls,
// so any number of processes may use the same directory.
type Home struct {
	path        string
	state       *state.DB
	now         func() time.Time
	on          Progress
	brief       bool // thrown away when the work is done
	assure      func() (*Assurance, error)
	hostVersion string
	fetcher     func(context.Context) (Fetcher, error)
	checked     atomic.Bool // the directory existed and kept the rules
}

// Progress carries optional callbacks; nil members are skipped.
type Progress struct {
	// Stage names what a long command is doing now.
	Stage func(name string)
	// Bytes reports work done within the stage; total is 0 when unknown.
	Bytes func(done, total int64)
	// Note says something that the person should know and that is no error.
	Note func(text string)
	// Warn says what the person must know although the work goes on; perhaps again.
	Warn func(text string)
}

func (p Progress) warn(format string, args ...any) {
	if p.Warn != nil {
		p.Warn(fmt.Sprintf(format, args...))
	}
}

func (p Progress) stage(name string) {
	if p.Stage != nil {
		p.Stage(name)
	}
}

func (p Progress) note(format string, args ...any) {
	if p.Note != nil {
		p.Note(fmt.Sprintf(format, args...))
	}
}

// Options configure Open.
type Options struct {
	Now      func() time.Time // nil: time.Now
	Progress Progress
	// Throwaway: the directory is removed when the work is done, so that nothing is
	// kept in it for a later review.
	Throwaway bool
	// Assurance says what evidence is judged by; it is asked only where there is
	// evidence or a policy to ask for it. nil: the default policy, and nobody who
	// proves anything.
	Assurance func() (*Assurance, error)
	// HostVersion is this program's, which packages may ask to be newer than theirs.
	// One that begins with no MAJOR.MINOR is new enough.
	HostVersion string
	// Obituary makes the receipts of operations that Repair finds without a supervisor. nil:
	// there are none.
	Obituary Obituary
	// Fetcher starts whoever opens connections; it is asked only where there is something
	// to fetch. nil: nobody does.
	Fetcher func(context.Context) (Fetcher, error)
}

// Open checks the directory's owner, mode, ancestors and layout, finishes or undoes
// what a killed command left behind, and returns it. A directory that does not
// exist is not created until something is written.
func Open(path string, o Options) (*Home, error) {
	h := homeAt(path, o)
	if err := h.check(); err != nil {
		return nil, err
	}
	h.recover(context.Background())
	return h, nil
}

func homeAt(path string, o Options) *Home {
	h := &Home{path: path, state: state.At(path), now: o.Now, on: o.Progress, brief: o.Throwaway, assure: o.Assurance, hostVersion: o.HostVersion, fetcher: o.Fetcher}
	if h.now == nil {
		h.now = time.Now
	}
	return h
}

// check refuses a data directory that somebody else could change, and one in which
// a place of packages is no directory: a link there would lead out of what the
// first rule protects.
func (h *Home) check() error {
	there := exists(h.path)
	if err := checkDataDir(h.path); err != nil {
		return err
	}
	for _, name := range [...]string{storeDir, archivesDir, pluginsDir, stagingDir, quarantineDir, runningDir, revokedDir, pluginStateDir, keysDir} {
		info, err := os.Lstat(h.join(name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return fmt.Errorf("data directory: %w", err)
		case info.Mode()&fs.ModeSymlink != 0:
			return &UnsafeDirectory{h.join(name), "is a symbolic link"}
		case !info.IsDir():
			return &UnsafeDirectory{h.join(name), "is not a directory"}
		}
	}
	h.checked.Store(there)
	return nil
}

// Path returns the data directory's absolute path.
func (h *Home) Path() string { return h.path }

func (h *Home) join(parts ...string) string {
	return filepath.Join(append([]string{h.path}, parts...)...)
}

// ensure creates the data directory and the named directories below it, 0700. Where
// somebody else was quicker to create it, in a directory that all can write, it is
// refused.
func (h *Home) ensure(names ...string) error {
	for _, name := range append([]string{""}, names...) {
		if err := os.MkdirAll(h.join(name), 0o700); err != nil {
			return h.cannotWrite("data directory", err)
		}
	}
	if h.checked.Load() {
		return nil
	}
	return h.check()
}

// update is a transaction that changes something.
func (h *Home) update(ctx context.Context, fn func(*state.Tx) error) error {
	if err := h.ensure(); err != nil {
		return err
	}
	return h.state.Update(ctx, fn)
}

func isReadOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, errReadOnlyFS) || errors.Is(err, state.ErrReadOnly)
}
