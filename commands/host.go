package commands

import (
	"context"
	"errors"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/project"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/runtime"
	"github.com/switchyard-plugins/switchyard/runtime/process"
)

// host returns what runs plugins, and the lock that they run under. It must be
// asked for before context: a second interrupt then ends a call at once instead
// of the process.
func (in *invocation) host() (*runtime.Host, *pkgmgr.Lock, error) {
	in.force = make(chan struct{})
	h, lock, err := in.site()
	if err != nil {
		return nil, nil, err
	}
	host := in.hostOf(h)
	host.Force = in.force
	if lock != nil {
		host.Avoid = append(host.Avoid, lock.Root)
	}
	if dir, err := in.env.Getwd(); err == nil {
		avoidAround(host, dir)
	}
	return host, lock, nil
}

// hostOn is host for a call on a project. The project's own lock is the ceiling of
// what is done to it, wherever one stands; without one, the lock of the working
// directory is.
func (in *invocation) hostOn(req *runtime.Request) (*runtime.Host, error) {
	host, lock, err := in.host()
	if err != nil {
		return nil, err
	}
	req.Lock = lock
	if req.Project == "" {
		return host, nil
	}
	avoidAround(host, req.Project)
	own, err := pkgmgr.ReadLock(req.Project)
	if err != nil {
		return nil, err
	}
	if own != nil {
		req.Lock = own
		host.Avoid = append(host.Avoid, own.Root)
	}
	return host, nil
}

// avoidAround keeps programs of the working copy that dir lies in from plugins.
func avoidAround(host *runtime.Host, dir string) {
	if root, err := project.VersionControlRoot(dir); err == nil && root != "" {
		host.Avoid = append(host.Avoid, root)
	}
}

func (in *invocation) hostOf(h *pkgmgr.Home) *runtime.Host {
	return &runtime.Host{Home: h, Version: hostVersion(), Lookup: in.env.LookupEnv, Now: in.env.Now}
}

// sweep ends what killed commands left running and records their operations as
// abandoned.
func (in *invocation) sweep(h *pkgmgr.Home) error {
	return in.swept(in.hostOf(h).Recover(context.Background()))
}

// swept tells what a sweep did. Processes that could not be ended and records that
// cannot be written are left for a later command; they keep this one from nothing.
func (in *invocation) swept(ended int, err error) error {
	if ended > 0 {
		in.note("Ended %s that a killed command had left behind.", count(ended, "process", "processes"))
	}
	var survivors *process.SurvivorError
	if errors.As(err, &survivors) {
		in.warn("a killed command left %v", survivors)
	}
	var readOnly *pkgmgr.ReadOnly
	if err == error(survivors) || errors.Is(err, state.ErrReadOnly) || errors.As(err, &readOnly) {
		return nil
	}
	return err
}
