package commands

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
)

// dataDir resolves the data directory in force; nothing is created.
func (in *invocation) dataDir() (string, error) {
	return pkgmgr.DataDir(in.globals.dataDir, in.getenv)
}

// getenv is os.Getenv of the invocation's Env.
func (in *invocation) getenv(name string) string {
	v, _ := in.env.LookupEnv(name)
	return v
}

// home opens the data directory in force, after what killed commands left behind
// was cleaned up.
func (in *invocation) home() (*pkgmgr.Home, error) {
	dir, err := in.dataDir()
	if err != nil {
		return nil, err
	}
	h, err := pkgmgr.Open(dir, pkgmgr.Options{Now: in.env.Now, Progress: in.progress(), Assurance: in.assurance(), Fetcher: in.fetcher, HostVersion: version})
	if err != nil {
		return nil, err
	}
	return h, in.sweep(h)
}

// progress shows long work as a bar on a terminal, as lines under --verbose.
func (in *invocation) progress() pkgmgr.Progress {
	p := pkgmgr.Progress{
		Stage: func(name string) { in.detail("%s", name) },
		Note:  func(text string) { in.note("%s", text) },
		Warn:  func(text string) { in.warn("%s", text) },
	}
	if in.bar == nil {
		in.bar = in.newBar()
	}
	if b := in.bar; b != nil {
		p.Stage = func(name string) {
			in.detail("%s", name)
			b.enter(name)
		}
		p.Bytes = b.advance
	}
	return p
}

// working names work that reports no stage of its own, for the bar.
func (in *invocation) working(stage string) {
	if in.bar != nil {
		in.bar.enter(stage)
	}
}

// ref reads a plugin's name and remembers it for hints.
func (in *invocation) ref(s string) (pkgmgr.Ref, error) {
	ref, err := pkgmgr.ParseRef(s)
	if err != nil {
		return ref, in.usage("%v", err)
	}
	in.subject = s
	return ref, nil
}

// oneRef is the single argument NAME of a command.
func (in *invocation) oneRef(c *cli.Context) (pkgmgr.Ref, error) {
	name, err := in.oneArgument(c)
	if err != nil {
		return pkgmgr.Ref{}, err
	}
	return in.ref(name)
}

// homeAndArgument opens the data directory for a command with a single argument.
func (in *invocation) homeAndArgument(c *cli.Context) (*pkgmgr.Home, string, error) {
	argument, err := in.oneArgument(c)
	if err != nil {
		return nil, "", err
	}
	h, err := in.home()
	return h, argument, err
}

// homeAndRef opens the data directory for a command with the single argument NAME,
// which needs no lock.
func (in *invocation) homeAndRef(c *cli.Context) (*pkgmgr.Home, pkgmgr.Ref, error) {
	ref, err := in.oneRef(c)
	if err != nil {
		return nil, ref, err
	}
	h, err := in.home()
	return h, ref, err
}

// homeAndID opens the data directory for a command that looks at records, with the
// optional argument NAME: records outlive the plugin. Without it the id is empty.
func (in *invocation) homeAndID(c *cli.Context) (h *pkgmgr.Home, id string, err error) {
	args, err := in.arguments(c, 0, 1)
	if err != nil {
		return nil, "", err
	}
	if len(args) > 0 {
		ref, err := in.ref(args[0])
		if err != nil {
			return nil, "", err
		}
		id = ref.ID
	}
	h, err = in.home()
	return h, id, err
}

// lock reads the lock of the project that the working directory belongs to; nil
// where there is none.
func (in *invocation) lock() (*pkgmgr.Lock, error) {
	dir, err := in.env.Getwd()
	if err != nil {
		return nil, err
	}
	return pkgmgr.ReadLock(dir)
}

// site opens the data directory and the project's lock: what most commands about
// one plugin work on. A listing decides nothing: it goes on where the lock cannot be
// understood, and says so.
func (in *invocation) site() (*pkgmgr.Home, *pkgmgr.Lock, error) {
	h, err := in.home()
	if err != nil {
		return nil, nil, err
	}
	lock, err := in.lock()
	var faults lockfile.Faults
	if in.commandName() != "list" || !errors.As(err, &faults) {
		return h, lock, err
	}
	mend := ""
	if errors.Is(err, lockfile.ErrConflict) {
		mend = "; next: " + in.next("lock", "--merge")
	}
	in.warn("%v; what follows leaves the lock out of account%s", faults[0], mend)
	return h, nil, nil
}

// scratch performs work on a data directory that is made for it and thrown away, also
// by an interrupt.
func (in *invocation) scratch(assure func() (*pkgmgr.Assurance, error), work func(*pkgmgr.Home) error) (err error) {
	in.context()
	dir, err := os.MkdirTemp("", "switchyard-")
	if err != nil {
		return err
	}
	defer func() {
		if e := removeTree(dir); err == nil {
			err = e
		}
	}()
	h, err := pkgmgr.Open(dir, pkgmgr.Options{Now: in.env.Now, Progress: in.progress(), Assurance: assure, Throwaway: true, HostVersion: version})
	if err != nil {
		return err
	}
	return work(h)
}

// removeTree removes a data directory, whose trees are read-only.
func removeTree(dir string) error {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return err
	})
	if err != nil {
		return err
	}
	return os.RemoveAll(dir)
}
