// Package runtime runs plugins: it takes decisions from pkgmgr in one readable
// order, starts one supervised child for the Approval that comes out of them,
// exchanges the call protocol with it, and records what happened.
//
// It refuses to start anything without a *pkgmgr.Approval, installs nothing,
// decides nothing about trust, and never prints.
package runtime

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/runtime/process"
	"github.com/switchyard-plugins/switchyard/schemas/ijson"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

// DefaultTimeout bounds one call, from the start of the child to its answer.
const DefaultTimeout = 15 * time.Second

// A Host runs the plugins of one data directory.
type Host struct {
	Home    *pkgmgr.Home
	Version string                      // of this program, told to plugins
	Lookup  func(string) (string, bool) // the environment that may be passed on in part
	Now     func() time.Time            // nil: time.Now
	// Avoid are directories from which no program may reach a plugin through PATH,
	// beside the package and the project: the project that the caller works in.
	Avoid []string
	// Force, once closed, ends a call at once instead of giving the plugin the
	// grace to stop by itself: the second interrupt. nil: never.
	Force <-chan struct{}
	// Denials is the data directory whose revocations count beside Home's own, which
	// in the author's loop is a throw-away one. nil: none.
	Denials *pkgmgr.Home
	// Settings are a session plugin's, for the exchange of health and of enabling: an
	// object. nil: none.
	Settings []byte
}

// A Request is one call.
type Request struct {
	pkgmgr.CallRequest
	Action         string        // operate only
	Input          []byte        // operate only: one JSON document
	Timeout        time.Duration // 0: DefaultTimeout
	IdempotencyKey string        // operate only
	Dev            bool          // the author's loop: marked in every record
}

// A Result is what a call brought. Exactly one of Health, Inspect and Operate is set.
type Result struct {
	Call        string // id; also the operation's
	ID, Version string
	Granted     []manifest.Scope
	Health      *plugin.HealthResult
	Inspect     *plugin.InspectResult
	Operate     *plugin.OperateResult
	Replayed    bool // the recorded result of an earlier operation with this key
	Warnings    []string

	health state.Health // as recorded in the end
}

// ErrInterrupted says that the person, another process or a revocation ended the
// call. Its cause is wrapped.
var ErrInterrupted = errors.New("interrupted")

// ErrRequest is wrapped by the error of a Request that no plugin could be asked. One
// whose input is no strict JSON is a *pkgmgr.BadInput.
var ErrRequest = errors.New("invalid request")

// Run performs one call. The order is the security contract: every decision comes
// before anything of the package is executed, the digests come last, and the child
// is started for their Approval alone.
//
// With an *Unrecorded error the result is nil only if the plugin failed as well.
func (h *Host) Run(ctx context.Context, req Request) (*Result, error) {
	if err := req.check(); err != nil {
		return nil, err
	}
	d, err := h.Home.Consider(ctx, req.CallRequest) // marks the call: from here on a revocation finds it
	if err != nil {
		return nil, err
	}
	defer d.Call.End()
	if err := d.NotRevoked(); err != nil {
		return nil, err
	}
	if err := d.Trusted(); err != nil {
		return nil, err
	}
	if err := d.Granted(); err != nil {
		return nil, err
	}
	if err := d.ProjectTrusted(); err != nil {
		return nil, err
	}
	environment := h.environment(plugin.Protocol, d.Dir(), req.Project)
	approval, err := d.Rehash(ctx)
	if err != nil {
		return nil, err
	}
	defer approval.Close()
	if req.Method == pkgmgr.MethodOperate {
		replay, err := h.Home.StartOperation(ctx, approval, operationRequest(req))
		if err != nil {
			return nil, err
		}
		if replay != nil {
			return replayed(approval, *replay)
		}
	}
	return h.call(ctx, approval, req, environment)
}

// Enable grants exactly the offered scopes after a good initialize and health
// exchange with them.
func (h *Host) Enable(ctx context.Context, ref pkgmgr.Ref, lock *pkgmgr.Lock, offer []manifest.Scope) (out *pkgmgr.Enabled, err error) {
	d, err := h.Home.ConsiderEnable(ctx, ref, lock, offer)
	if err != nil {
		return nil, err
	}
	err = h.introduce(ctx, d, func(a *pkgmgr.Approval, health state.Health) (err error) {
		out, err = h.Home.RecordEnable(ctx, a, health)
		return err
	})
	return out, err
}

// ApproveLocked turns what a lock says about one plugin into an approval for the
// lock's project, after the same exchange. The caller has made sure that the lock
// may be trusted (pkgmgr.Home.MayTrustLock).
func (h *Host) ApproveLocked(ctx context.Context, lock *pkgmgr.Lock, entry lockfile.Plugin) (out *pkgmgr.Enabled, err error) {
	d, err := h.Home.ConsiderLock(ctx, lock, entry)
	if err != nil {
		return nil, err
	}
	err = h.introduce(ctx, d, func(a *pkgmgr.Approval, health state.Health) (err error) {
		out, err = h.Home.RecordLockApproval(ctx, a, lock, health)
		return err
	})
	return out, err
}

// introduce makes every decision, then starts the plugin for initialize and health,
// and stores the grants only if it answers well.
func (h *Host) introduce(ctx context.Context, d *pkgmgr.Decision, store func(*pkgmgr.Approval, state.Health) error) error {
	defer d.Call.End()
	if err := d.NotRevoked(); err != nil {
		return err
	}
	if err := d.Trusted(); err != nil {
		return err
	}
	if err := d.Granted(); err != nil {
		return err
	}
	if err := d.ProjectTrusted(); err != nil {
		return err
	}
	environment := h.environment(plugin.Protocol, d.Dir(), "")
	approval, err := d.Rehash(ctx)
	if err != nil {
		return err
	}
	defer approval.Close()
	result, err := h.call(ctx, approval, Request{CallRequest: pkgmgr.CallRequest{Method: pkgmgr.MethodHealth}}, environment)
	if err != nil {
		return err
	}
	if result.Health.Status == plugin.Unhealthy {
		return &Unhealthy{ID: approval.Manifest.ID, Message: result.Health.Message}
	}
	return store(approval, result.health)
}

// Unhealthy says that a plugin answered well and called itself unhealthy.
type Unhealthy struct{ ID, Message string }

func (e *Unhealthy) Error() string {
	return fmt.Sprintf("%s says that it is unhealthy: %s", e.ID, e.Message)
}

// Recover ends what calls of killed commands left behind, processes first, and
// records their operations as abandoned. Where nothing was left it costs one
// directory read. Calls of which a process could not be ended, a
// *process.SurvivorError, stay for the next command; their operations do not.
func (h *Host) Recover(ctx context.Context) (ended int, err error) {
	dead := h.Home.TakeDeadCalls()
	if len(dead) == 0 {
		return 0, nil
	}
	ids := make([]string, len(dead))
	for i, d := range dead {
		defer d.Release()
		ids[i] = d.ID
	}
	ended, survivors := process.Sweep(ids)
	for _, d := range dead {
		if err := d.Abandon(ctx, h.Obituary); err != nil {
			return ended, errors.Join(err, survivors)
		}
		if survivors != nil {
			continue
		}
		if err := d.Remove(); err != nil {
			return ended, err
		}
	}
	return ended, survivors
}

func (h *Host) now() time.Time {
	if h.Now != nil {
		return h.Now()
	}
	return time.Now()
}

// check refuses a request before anything is looked at.
func (req Request) check() error {
	switch req.Method {
	case pkgmgr.MethodHealth:
		if req.Project != "" {
			return fmt.Errorf("%w: health has no project", ErrRequest)
		}
	case pkgmgr.MethodInspect, pkgmgr.MethodOperate:
		if req.Project == "" {
			return fmt.Errorf("%w: %s needs a project", ErrRequest, req.Method)
		}
	default:
		return fmt.Errorf("%w: method \"%s\"", ErrRequest, req.Method)
	}
	if req.Method != pkgmgr.MethodOperate {
		return nil
	}
	if req.Action == "" {
		return fmt.Errorf("%w: operate needs an action", ErrRequest)
	}
	if err := ijson.Check(req.Input); err != nil {
		return &pkgmgr.BadInput{Action: req.Action, Err: err}
	}
	return nil
}

func (req Request) timeout() time.Duration {
	if req.Timeout > 0 {
		return req.Timeout
	}
	return DefaultTimeout
}

func operationRequest(req Request) pkgmgr.OperationRequest {
	return pkgmgr.OperationRequest{Action: req.Action, Input: req.Input, IdempotencyKey: req.IdempotencyKey, Dev: req.Dev}
}

// environment makes the environment of a child beside the digests, which take longer.
// The returned function gives it for the package that was approved in the end.
func (h *Host) environment(protocol, expected, project string) func(a *pkgmgr.Approval) []string {
	made := make(chan []string, 1)
	go func() { made <- process.Environment(h.Lookup, protocol, h.avoided(expected, project)...) }()
	return func(a *pkgmgr.Approval) []string {
		if now := a.Manifest.ProtocolVersion; a.Dir != expected || now != protocol {
			return process.Environment(h.Lookup, now, h.avoided(a.Dir, project)...)
		}
		return <-made
	}
}

func (h *Host) avoided(dirs ...string) []string { return append(dirs, h.Avoid...) }

// project is what the plugin is told: the root only under project.files.read.
func project(a *pkgmgr.Approval) plugin.Project {
	p := plugin.Project{ID: a.ProjectID, DisplayName: filepath.Base(a.ProjectRoot)}
	for _, s := range a.Grants {
		if s == manifest.ScopeFilesRead {
			p.Root = a.ProjectRoot
		}
	}
	return p
}
