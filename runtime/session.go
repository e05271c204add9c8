package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/runtime/session"
	"github.com/switchyard-plugins/switchyard/schemas/ijson"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

// stateVariable names a session plugin's own directory to it.
const stateVariable = "SWITCHYARD_PLUGIN_STATE"

// A Transport is what the frames of a session go over.
type Transport int

// The transports.
const (
	OverStdio Transport = iota // standard input and output
	// OverSocket is a Unix socket that only the child may use. The package must name the
	// feature transport.unix.v1.
	OverSocket
)

// A SessionRequest says what is to be asked of which package. Method is set by RunSession.
type SessionRequest struct {
	pkgmgr.CallRequest
	Settings       json.RawMessage // an object; nil: none
	StartTimeout   time.Duration   // from the start of the child to its readiness; 0: DefaultTimeout
	RequestTimeout time.Duration   // of requests that say nothing else; 0: DefaultTimeout
	MaxInFlight    int             // 0: the session's default
	Transport      Transport
	Dev            bool // the author's loop: marked in every record
}

// A Session is a running session plugin, for the time of RunSession's use function. Its
// methods may be called from any goroutine.
type Session struct {
	Client *session.Client // for what is no request: health, settings, receipts

	r *hosting
}

// An Ended is what a session left beside the results of its requests.
type Ended struct {
	Call        string // id
	ID, Version string
	Granted     []manifest.Scope
	Warnings    []string
	Health      state.Health
}

// RunSession starts a session package once and lets use ask it for many operations. The
// order is that of Run: every decision comes before anything of the package is executed,
// the digests come last, and the child is started for their Approval alone; before each
// request the decisions are looked at again.
//
// use's context ends when the session must: its requests have been asked to stop then.
// When use returns the session ends in order and no process is left. The error is that of
// use, joined with what ended the session. Ended is nil if no child was started.
func (h *Host) RunSession(ctx context.Context, req SessionRequest, use func(context.Context, *Session) error) (*Ended, error) {
	req.Method = pkgmgr.MethodRequest
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
	environment := h.environment(pkgmgr.SessionProtocol, d.Dir(), req.Project)
	approval, err := d.Rehash(ctx)
	if err != nil {
		return nil, err
	}
	defer approval.Close()
	r := &hosting{running: running{host: h, approval: approval, environment: environment}, terms: req}
	r.req.Method, r.req.Dev = pkgmgr.MethodRequest, req.Dev
	return r.run(ctx, use)
}

func (req *SessionRequest) check() error {
	if len(req.Settings) > 0 {
		if err := ijson.Check(req.Settings); err != nil {
			return fmt.Errorf("%w: the settings: %w", ErrRequest, err)
		}
	}
	return nil
}

// sessionHealth is what health and enabling ask of a session package: hello, init and
// healthCheck.
func (h *Host) sessionHealth(ctx context.Context, a *pkgmgr.Approval, req Request, environment func(*pkgmgr.Approval) []string) (*Result, error) {
	r := &hosting{running: running{host: h, approval: a, req: req, environment: environment},
		terms: SessionRequest{StartTimeout: req.timeout(), Dev: req.Dev, Settings: h.Settings}, healthOnly: true}
	out := &Result{Call: a.Call.ID, ID: a.Manifest.ID, Version: a.Manifest.Version, Granted: a.Grants}
	ended, err := r.run(ctx, func(ctx context.Context, s *Session) error {
		ctx, cancel := context.WithTimeoutCause(ctx, req.timeout(), errTimeout)
		defer cancel()
		report, err := s.Client.Health(ctx)
		if err != nil {
			return err
		}
		r.report = &report
		out.Health = &plugin.HealthResult{Status: plugin.HealthStatus(report.Status), Message: report.Message, CheckedAt: report.UpdatedAt}
		return nil
	})
	if err != nil {
		var unrecorded *Unrecorded
		if errors.As(err, &unrecorded) && out.Health != nil {
			return out, err
		}
		return nil, err
	}
	out.Warnings, out.health = ended.Warnings, ended.Health
	return out, nil
}
