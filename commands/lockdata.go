package commands

import (
	"errors"
	"maps"
	"slices"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/project"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// lockedData is one entry of a lock as commands print it.
type lockedData struct {
	ID        string           `json:"id" doc:"The plugin's id."`
	Version   string           `json:"version" doc:"The locked version."`
	Source    string           `json:"source" doc:"Where its archives come from, empty where that is not known."`
	Grants    []string         `json:"grants" doc:"The most that may be granted under the lock."`
	Platforms []lockedPlatform `json:"platforms" doc:"Sorted by platform."`
}

type lockedPlatform struct {
	Platform    string        `json:"platform" doc:"os/arch, or any."`
	Archive     digest.Digest `json:"archive" doc:"The archive's digest."`
	Package     digest.Digest `json:"package" doc:"The package digest."`
	Manifest    digest.Digest `json:"manifest" doc:"The manifest digest."`
	Fingerprint digest.Digest `json:"fingerprint" doc:"The digest of manifest and executable."`
}

func newLockedData(p lockfile.Plugin) lockedData {
	d := lockedData{ID: p.ID, Version: p.Version, Source: p.Source, Grants: p.Grants}
	for _, key := range slices.Sorted(maps.Keys(p.Platforms)) {
		e := p.Platforms[key]
		d.Platforms = append(d.Platforms, lockedPlatform{key, e.Archive, e.Package, e.Manifest, e.Fingerprint})
	}
	return d
}

type lockChange struct {
	Kind     string `json:"kind" doc:"What differs."`
	ID       string `json:"id" doc:"The plugin's id, or the issuer of a revocation list."`
	Platform string `json:"platform" doc:"The platform, empty where none is concerned."`
	Was      string `json:"was" doc:"The value before, or on our side."`
	Now      string `json:"now" doc:"The value now, or on their side."`
	Text     string `json:"text" doc:"The change in one line."`
}

func newLockChanges(list []lockfile.Change) []lockChange {
	var out []lockChange
	for _, c := range list {
		out = append(out, lockChange{string(c.Kind), c.ID, c.Platform, c.Was, c.Now, c.String()})
	}
	return out
}

// projectHere returns the project that the working directory belongs to, or with
// create the one that an edit begins.
func (in *invocation) projectHere(mode projectMode) (*project.Project, error) {
	dir, err := in.env.Getwd()
	if err != nil {
		return nil, err
	}
	p, err := project.Find(dir)
	if mode == projectBegin && errors.Is(err, project.ErrNone) {
		return project.New(dir)
	}
	return p, err
}

type projectMode int

const (
	projectMustExist projectMode = iota
	projectBegin                 // one without files will do
)

// lockHere is the lock that a command cannot do without.
func (in *invocation) lockHere() (*pkgmgr.Lock, error) {
	lock, err := in.lock()
	if err == nil && lock == nil {
		err = pkgmgr.ErrNoLock
	}
	return lock, err
}
