package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/switchyard-plugins/switchyard/runtime/process"
	"github.com/switchyard-plugins/switchyard/runtime/process/redact"
	"github.com/switchyard-plugins/switchyard/runtime/session"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// hosting is one session between its approval and its record.
type hosting struct {
	running
	terms   SessionRequest
	client  *session.Client
	schemas schemas
	report  *wire.HealthReport // the last that was asked for

	healthOnly bool           // no request is to be sent
	secrets    []wire.Secret  // that the settings refer to
	masked     *redact.Values // the same, for what is shown
	warnings   []string

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
		if !slices.Contains(a.Manifest.Session.Protocol.Features, string(wire.TransportUnix)) {
			return unwatch, fmt.Errorf("%w: %s does not say that it speaks over a socket (%s): leave that out", ErrRequest, a.Manifest.ID, wire.TransportUnix)
		}
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
		Executable: entry.executable, Path: entry.path, Args: entry.args, Dir: a.Dir, Env: env, CallID: a.Call.ID, Now: r.host.now, Secrets: r.masked,
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

func (r *hosting) options(settings json.RawMessage) session.Options {
	timeout := r.terms.RequestTimeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	// A limit counts whole milliseconds, and one of 0 would be no limit.
	timeoutMs := max(1, timeout.Milliseconds())
	return session.Options{
		HostVersion: r.host.Version, Peer: peerOf(r.approval, r.schemas), InstanceID: r.approval.Call.ID,
		Grants: grantsOf(r.approval), Settings: settings, AcceptedClasses: classesOf(r.approval),
		Limits: wire.Limits{RequestTimeoutMs: timeoutMs, MaxInFlight: int64(r.terms.MaxInFlight)},
		Masked: r.masked,
		Now:    r.host.now,
	}
}

// grace is how long the child may still take to exit.
func (r *hosting) grace() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running.grace()
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
