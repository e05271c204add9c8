package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/runtime/process"
	"github.com/switchyard-plugins/switchyard/runtime/session"
	"github.com/switchyard-plugins/switchyard/schemas/ijson"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
	"github.com/switchyard-plugins/switchyard/sdk/plugin"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// stateVariable names a session plugin's own directory to it.
const stateVariable = "SWITCHYARD_PLUGIN_STATE"

// A Transport is what the frames of a session go over.
type Transport int

// The transports.
const (
	OverStdio  Transport = iota // standard input and output
	OverSocket                  // a Unix socket that only the child may use
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
		terms: SessionRequest{StartTimeout: req.timeout(), Dev: req.Dev, Settings: h.Settings}}
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

// SessionFailed says that a session plugin failed: the fault, how the process ended, and
// the last lines that it wrote to stderr, redacted.
type SessionFailed struct {
	ID, Version string
	Fault       *session.Fault
	Exit        process.Exit
	Stderr      []string
}

func (e *SessionFailed) Error() string { return e.ID + " " + e.Version + ": " + e.Fault.Error() }
func (e *SessionFailed) Unwrap() error { return e.Fault }

// hosting is one session between its approval and its record.
type hosting struct {
	running
	terms   SessionRequest
	client  *session.Client
	schemas schemas
	report  *wire.HealthReport // the last that was asked for

	mu     sync.Mutex
	open   map[string]*Running // by operationId; those that have no record of their end
	halted error               // why no more requests are taken
}

// run starts the child, lets use work, ends the child, and records the session.
func (r *hosting) run(outer context.Context, use func(context.Context, *Session) error) (*Ended, error) {
	if err := r.stopped(outer); err != nil {
		return nil, err
	}
	r.open = map[string]*Running{}
	ctx, end := context.WithCancelCause(context.Background())
	defer end(nil)
	unwatch, err := r.begin(outer, ctx, end)
	if err == nil {
		err = use(ctx, &Session{Client: r.client, r: r})
		r.settleAll()
	}
	if r.client != nil {
		r.mu.Lock()
		if r.until.IsZero() {
			r.until = r.host.now().Add(process.DefaultGrace) // for all that follows
		}
		r.mu.Unlock()
		grace, cancel := r.forced()
		bounded, done := context.WithTimeout(grace, r.grace())
		_ = r.client.Drain(bounded, 0) // its fault is Err's
		done()
		cancel()
		if fault := r.client.Err(); fault != nil && err == nil {
			err = fault
		}
	}
	last := r.finish()
	unwatch()
	return r.conclude(err, last)
}

// begin starts the child and opens the session. The returned function ends the watch over
// stops from outside; it is never nil.
func (r *hosting) begin(outer, ctx context.Context, end context.CancelCauseFunc) (unwatch func(), err error) {
	unwatch = func() {}
	a := r.approval
	if r.schemas, err = readSchemas(a); err != nil {
		return unwatch, err
	}
	terms, err := r.settings()
	if err != nil {
		return unwatch, err
	}
	dir, err := r.host.Home.PluginState(a.Manifest.ID)
	if err != nil {
		return unwatch, err
	}
	env := append(r.environment(a), stateVariable+"="+dir)
	var socket *session.Socket
	if r.terms.Transport == OverSocket {
		if socket, err = session.Listen(); err != nil {
			return unwatch, err
		}
		defer socket.Close()
		env = append(env, session.SocketVariable+"="+socket.Path)
	}
	entry, err := entryOf(a, env)
	if err != nil {
		return unwatch, err
	}
	defer entry.close()
	child, err := process.Start(process.Spec{
		Executable: entry.executable, Path: entry.path, Args: entry.args, Dir: a.Dir, Env: env, CallID: a.Call.ID, Now: r.host.now,
	})
	if err != nil {
		return unwatch, err
	}
	r.child = child
	unwatch = r.watch(outer, end)
	timeout := r.terms.StartTimeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	starting, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	conn, err := r.connect(starting, socket)
	if err != nil {
		return unwatch, err
	}
	client, err := session.Open(starting, conn, r.options(terms))
	if err != nil {
		return unwatch, err
	}
	r.mu.Lock()
	r.client = client
	r.mu.Unlock()
	return unwatch, nil
}

// connect returns the connection to the child.
func (r *hosting) connect(ctx context.Context, socket *session.Socket) (io.ReadWriteCloser, error) {
	if socket == nil {
		return session.Stdio{Stdin: r.child.Stdin, Stdout: r.child.Stdout}, nil
	}
	go io.Copy(io.Discard, r.child.Stdout) // free text, which must not block it
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-r.child.Done():
			cancel(errExited)
		case <-ctx.Done():
		}
	}()
	conn, err := socket.Accept(ctx, r.child.PID())
	if err != nil {
		f := &session.Fault{Code: wire.CodePluginTimeout, Text: "the plugin did not connect to its socket in time", Cause: err}
		switch {
		case errors.Is(err, errExited):
			f.Code, f.Text = wire.CodePluginCrashed, "the plugin ended before it connected to its socket"
		case errors.Is(err, session.ErrStranger):
			f.Text += " (" + err.Error() + ")"
		}
		return nil, f
	}
	return conn, nil
}

var errExited = errors.New("the process has ended")

// settings returns what init tells: what the caller gave, which a package that asks for
// settings.read gets only with that grant, and which its settings' schema must take.
func (r *hosting) settings() (json.RawMessage, error) {
	given, m := r.terms.Settings, r.approval.Manifest.Session
	if len(given) == 0 {
		given = json.RawMessage("{}")
	} else if scope := sessionmanifest.ScopeSettingsRead; r.approval.Manifest.Requests(manifest.Scope(scope)) && !granted(r.approval, scope) {
		return nil, &pkgmgr.Denied{ID: r.approval.Manifest.ID, Scope: manifest.Scope(sessionmanifest.ScopeSettingsRead)}
	}
	if m.Settings == nil || m.Settings.Schema == nil || len(r.terms.Settings) == 0 {
		return given, nil
	}
	if f := validator(r.schemas[m.Settings.Schema.URI])(given); f != nil {
		return nil, fmt.Errorf("%w: the settings: %w", ErrRequest, f)
	}
	return given, nil
}

func granted(a *pkgmgr.Approval, scope sessionmanifest.Scope) bool {
	for _, s := range a.Grants {
		if s == manifest.Scope(scope) {
			return true
		}
	}
	return false
}

func (r *hosting) options(settings json.RawMessage) session.Options {
	timeout := r.terms.RequestTimeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	return session.Options{
		HostVersion: r.host.Version, Peer: peerOf(r.approval, r.schemas), InstanceID: r.approval.Call.ID,
		Grants: grantsOf(r.approval), Settings: settings, AcceptedClasses: classesOf(r.approval),
		Limits: wire.Limits{RequestTimeoutMs: timeout.Milliseconds(), MaxInFlight: int64(r.terms.MaxInFlight)},
		Now:    r.host.now,
	}
}

// watch sees stops from outside: it asks what is in flight to stop, gives it the grace,
// and then ends the child. The returned function ends the watch.
func (r *hosting) watch(outer context.Context, end context.CancelCauseFunc) (done func()) {
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		cause := r.awaitStop(outer, quit)
		if cause == nil {
			return
		}
		r.halt(cause)
		grace := time.NewTimer(process.DefaultGrace)
		defer grace.Stop()
		select {
		case <-quit:
		case <-r.child.Done():
		case <-grace.C:
		case <-r.host.Force:
		}
		end(cause)
		select {
		case <-quit: // it ended by itself, in order
		default:
			r.child.Kill(cause.Error())
		}
	}()
	return func() { close(quit); <-gone }
}

// awaitStop returns why the session is to end, or nil when quit is closed first. Single
// operations that somebody asked to end are told so.
func (r *hosting) awaitStop(outer context.Context, quit <-chan struct{}) error {
	poll := time.NewTicker(pkgmgr.StopPoll)
	defer poll.Stop()
	for {
		select {
		case <-quit:
			return nil
		case <-outer.Done():
			return context.Cause(outer)
		case <-poll.C:
			why, asked := r.approval.Call.StopRequested()
			if !asked {
				continue
			}
			if why == pkgmgr.StopRevoked {
				return r.cause(why)
			}
			ids, err := r.host.Home.CancelledOperations(context.Background(), r.approval.Call)
			if err != nil {
				return err
			}
			for _, id := range ids {
				r.cancel(id, pkgmgr.ErrCancelled)
			}
		}
	}
}

// halt takes no more requests and asks those in flight to stop.
func (r *hosting) halt(cause error) {
	r.mu.Lock()
	r.halted, r.stop = cause, cause
	r.until = r.host.now().Add(process.DefaultGrace)
	open := make([]*Running, 0, len(r.open))
	for _, o := range r.open {
		open = append(open, o)
	}
	r.mu.Unlock()
	for _, o := range open {
		o.Cancel(cause)
	}
}

func (r *hosting) cancel(operation string, cause error) {
	r.mu.Lock()
	o := r.open[operation]
	r.mu.Unlock()
	if o != nil {
		o.Cancel(cause)
	}
}

// grace is how long the child may still take to exit.
func (r *hosting) grace() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running.grace()
}

// settleAll records the ends of requests whose results nobody asked for.
func (r *hosting) settleAll() {
	r.mu.Lock()
	open := make([]*Running, 0, len(r.open))
	for _, o := range r.open {
		open = append(open, o)
	}
	r.mu.Unlock()
	for _, o := range open {
		o.Cancel(session.ErrDraining)
		_, _ = o.Result() // recorded; nobody asked
	}
}

// finish ends the child.
func (r *hosting) finish() ending {
	c := r.child
	if c == nil {
		return ending{}
	}
	if r.client == nil {
		c.Stdout.Close() // nobody listens: a plugin that goes on writing must not block
	}
	ctx, done := r.forced()
	defer done()
	exit := c.Finish(ctx, r.grace())
	c.Stdout.Close()
	return ending{exit: exit}
}

// conclude records the session and says what ended it.
func (r *hosting) conclude(err error, last ending) (*Ended, error) {
	err = r.explain(err, last.exit)
	a := r.approval
	rec := r.recordOf(Code(err))
	rec.Health = r.health(err)
	out := &Ended{Call: a.Call.ID, ID: a.Manifest.ID, Version: a.Manifest.Version, Granted: a.Grants, Health: rec.Health}
	if r.child != nil && err == nil {
		result := &Result{health: rec.Health}
		r.judge(result, last)
		out.Warnings, out.Health, rec.Health = result.Warnings, result.health, result.health
	}
	recorded := r.write(func(ctx context.Context) error { return r.host.Home.RecordCall(ctx, a, rec) })
	r.close(last, recorded)
	if r.child == nil {
		return nil, errors.Join(err, recorded)
	}
	if recorded != nil {
		return out, errors.Join(err, recorded)
	}
	return out, err
}

// explain completes a fault of the plugin with what the child's end shows; other errors
// stay as they are.
func (r *hosting) explain(err error, exit process.Exit) error {
	if err == nil {
		return nil
	}
	r.mu.Lock()
	stop := r.stop
	r.mu.Unlock()
	if stop != nil {
		return r.wasStopped(stop)
	}
	var f *session.Fault
	if !errors.As(err, &f) || r.child == nil {
		return err
	}
	if f.Code == wire.CodePluginCrashed && !exit.Clean() && !exit.Killed {
		f = f.AfterCrash(exit.String())
	}
	if f.Code == wire.CodePluginCrashed && r.approval.Manifest.EntryKind() == pkgmgr.EntryPython && (exit.Code == exitPythonTooOld || exit.Code == exitNoPythonSDK) {
		g := *f
		if g.Text = "the interpreter could not start it"; len(lastLines(r.child, 1)) > 0 {
			g.Text += ": " + lastLines(r.child, 1)[0]
		}
		f = &g
	}
	return &SessionFailed{ID: r.approval.Manifest.ID, Version: r.approval.Manifest.Version, Fault: f, Exit: exit, Stderr: lastLines(r.child, 5)}
}

// health is what the session showed of the plugin: unhealthy after a fault of its own.
func (r *hosting) health(err error) state.Health {
	now := r.host.now().UTC()
	h := state.Health{Package: r.approval.Package, At: now}
	var failed *SessionFailed
	switch {
	case errors.As(err, &failed) && !blameless(failed.Fault.Code):
		h.Status, h.Code, h.Message = state.HealthUnhealthy, string(failed.Fault.Code), cut(failed.Fault.Error())
	case err != nil && blames(err):
		h.Status, h.Code, h.Message = state.HealthUnhealthy, Code(err), cut(err.Error())
	case r.report != nil:
		h.Status, h.Message = state.HealthStatus(r.report.Status), cut(r.report.Message)
	case err != nil || r.client == nil:
		return state.Health{} // nothing was shown
	default:
		h.Status = state.HealthHealthy
		if status, message := r.client.Start(); status == wire.InitDegraded {
			h.Status, h.Message = state.HealthDegraded, cut(message)
		}
	}
	return h
}

// blameless are the codes that end a session without a fault of the plugin's.
func blameless(c wire.Code) bool {
	switch c {
	case wire.CodePermissionDenied, wire.CodeInvalidArgument, wire.CodeSchemaMismatch, wire.CodeSchemaUnknownMember:
		return true // it refused the settings
	}
	return false
}
