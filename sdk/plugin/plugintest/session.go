package plugintest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// A SessionConfig says what the host of a test offers. The zero value offers
// everything that the protocol has, grants what the manifest asks for, and has no
// settings.
type SessionConfig struct {
	Features        []wire.Feature // nil: all
	Settings        any            // nil: {}
	Grants          []plugin.Grant // nil: every permission of the manifest, under GrantID
	AcceptedClasses []plugin.PayloadClass
	Limits          plugin.Limits // zero members: 1 minute, 5 s, 64
	MaxFrameBytes   int64         // 0: 8 MiB
	Timeout         time.Duration // of each wait of the test; 0: 15 s
}

// GrantID is the permissionsGrantId of every grant that a SessionConfig does not
// name itself.
const GrantID = "plugintest-grant"

// A Session is a host in the test's own process, connected to a plugin that serves
// in the same process. Its methods may be called from several goroutines.
type Session struct {
	Hello *wire.HelloAck // what the plugin chose
	Init  *wire.InitAck

	config   SessionConfig
	manifest *plugin.SessionManifest
	granting bool // something is granted under GrantID
	agreed   wire.Agreed
	in       *io.PipeWriter
	served   chan error
	ended    chan struct{} // the plugin's output is at its end
	timeout  time.Duration

	sending  sync.Mutex // frames go out in the order of their numbers
	sequence uint64

	mu      sync.Mutex
	last    uint64 // the plugin's sequence
	calls   map[wire.UUID]*Call
	answers map[wire.UUID]chan wire.Body // by the messageId that was answered
	health  chan plugin.HealthReport
	fault   error // of the plugin's frames, or a fatal error that it sent
}

// OpenSession connects to the plugin and initializes it. The session ends with the
// test, and the test fails if it does not end well.
func OpenSession(t testing.TB, p *plugin.SessionPlugin, c SessionConfig) *Session {
	t.Helper()
	s, err := StartSession(p, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// StartSession is OpenSession without a test. An error that the plugin refused the
// session with is a *wire.Error. Close must be called if there is no error.
func StartSession(p *plugin.SessionPlugin, c SessionConfig) (*Session, error) {
	s := &Session{
		config: c, manifest: &p.Package.Manifest, granting: c.Grants == nil && len(p.Package.Manifest.Permissions) > 0, served: make(chan error, 1), ended: make(chan struct{}), timeout: c.Timeout,
		calls: map[wire.UUID]*Call{}, answers: map[wire.UUID]chan wire.Body{}, health: make(chan plugin.HealthReport, 64),
	}
	if s.timeout == 0 {
		s.timeout = callTimeout
	}
	s.agreed.Version, s.agreed.MaxFrameBytes = wire.MaxVersion, wire.DefaultMaxFrame
	in, hostOut := io.Pipe()
	hostIn, out := io.Pipe()
	s.in = hostOut
	go func() {
		err := plugin.ServeSession(context.Background(), in, out, p)
		in.Close()
		out.Close()
		s.served <- err
	}()
	go s.read(hostIn)
	if err := s.open(p.Package); err != nil {
		s.in.Close()
		<-s.served
		return nil, err
	}
	return s, nil
}

func (s *Session) open(pkg *plugin.Package) error {
	c := s.config
	hello := &wire.Hello{HostVersion: "plugintest", Protocol: wire.VersionRange{Min: wire.MinVersion, Max: wire.MaxVersion},
		Requires: []wire.Feature{}, Supports: c.Features, Codecs: []string{wire.CodecJSON}, MaxFrameBytes: c.MaxFrameBytes}
	if c.Features == nil {
		for _, f := range wire.Features {
			hello.Supports = append(hello.Supports, f.Feature)
		}
	}
	if hello.MaxFrameBytes == 0 {
		hello.MaxFrameBytes = wire.DefaultMaxFrame
	}
	answer, err := s.ask(hello)
	if err != nil {
		return err
	}
	ack, ok := answer.(*wire.HelloAck)
	if !ok {
		return violated("hello was answered with %s", answer.Type())
	}
	agreed, refusal := wire.Confirm(hello, ack)
	if refusal != nil {
		return refusal
	}
	s.mu.Lock()
	s.Hello, s.agreed = ack, agreed
	s.mu.Unlock()
	init, err := s.initBody(pkg)
	if err != nil {
		return err
	}
	if answer, err = s.ask(init); err != nil {
		return err
	}
	if s.Init, ok = answer.(*wire.InitAck); !ok {
		return violated("init was answered with %s", answer.Type())
	}
	return nil
}

func (s *Session) initBody(pkg *plugin.Package) (*wire.Init, error) {
	c := s.config
	settings := json.RawMessage("{}")
	if c.Settings != nil {
		var err error
		if settings, err = json.Marshal(c.Settings); err != nil {
			return nil, err
		}
	}
	digest, err := wire.Digest(settings)
	if err != nil {
		return nil, err
	}
	init := &wire.Init{InstanceID: "plugintest", Grants: []wire.Grant{}, Settings: settings, SettingsDigest: digest, AcceptedClasses: c.AcceptedClasses,
		Limits: wire.Limits{RequestTimeoutMs: c.Limits.RequestTimeoutMs, HeartbeatIntervalMs: c.Limits.HeartbeatIntervalMs, MaxInFlight: c.Limits.MaxInFlight}}
	if c.AcceptedClasses == nil {
		init.AcceptedClasses = wire.PayloadClasses
	}
	orElse(&init.Limits.RequestTimeoutMs, 60_000)
	orElse(&init.Limits.HeartbeatIntervalMs, 5_000)
	orElse(&init.Limits.MaxInFlight, 64)
	for _, g := range c.Grants {
		init.Grants = append(init.Grants, wire.Grant{PermissionsGrantID: g.PermissionsGrantID, PermissionID: g.PermissionID, Scope: g.Scope, ExpiresAt: g.ExpiresAtUTC})
	}
	if c.Grants == nil {
		for _, p := range pkg.Manifest.Permissions {
			init.Grants = append(init.Grants, wire.Grant{PermissionsGrantID: GrantID, PermissionID: p.ID, Scope: string(p.Scope)})
		}
	}
	return init, nil
}

func orElse(n *int64, otherwise int64) {
	if *n == 0 {
		*n = otherwise
	}
}

// Close ends the session in good order: goAway, then the end of the input. It
// returns a *Violation if the plugin does not end well.
func (s *Session) Close() error {
	s.Send(&wire.GoAway{LastAcceptedSequence: int64(s.accepted()), Reason: "the test is over", GraceMs: s.timeout.Milliseconds()})
	s.in.Close()
	timer := time.NewTimer(s.timeout + endTimeout)
	defer timer.Stop()
	select {
	case err := <-s.served:
		s.served <- err
		<-s.ended
		if err == nil {
			err = s.failed()
		}
		return err
	case <-timer.C:
		return violated("the plugin does not end after goAway and the end of its input")
	}
}

func (s *Session) accepted() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// failed returns why the session is of no more use, if it is.
func (s *Session) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault
}

// Send sends a message of any type and returns its messageId; it does not wait for
// an answer.
func (s *Session) Send(body wire.Body) (wire.UUID, error) {
	id := wire.NewUUID()
	return id, s.send(id, body, nil)
}

// send sends a message with an id. admit, if not nil, is asked with the size of its
// frame before it is sent; if it says no, nothing is.
func (s *Session) send(id wire.UUID, body wire.Body, admit func(size int64) bool) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	s.mu.Lock()
	e := wire.Envelope{Version: s.agreed.Version, MessageID: id, Sequence: s.sequence + 1, Timestamp: time.Now()}
	limit := int(s.agreed.MaxFrameBytes)
	frame := wire.AppendMessage(nil, &e, body)
	admitted := admit == nil || admit(int64(len(frame)))
	s.mu.Unlock()
	if !admitted {
		return errNotAdmitted
	}
	s.sequence++
	return wire.WriteFrame(s.in, frame, limit)
}

var errNotAdmitted = errors.New("not admitted")

// ask sends a message and waits for the frame that names it as its cause.
func (s *Session) ask(body wire.Body) (wire.Body, error) {
	id, answer := wire.NewUUID(), make(chan wire.Body, 1)
	s.mu.Lock()
	s.answers[id] = answer
	s.mu.Unlock()
	if err := s.send(id, body, nil); err != nil {
		return nil, err
	}
	return s.wait(answer)
}

func (s *Session) wait(answer chan wire.Body) (wire.Body, error) {
	timer := time.NewTimer(s.timeout)
	defer timer.Stop()
	select {
	case body := <-answer:
		if e, ok := body.(*wire.Error); ok {
			return nil, e
		}
		return body, nil
	case <-s.ended:
		select {
		case body := <-answer:
			if e, ok := body.(*wire.Error); ok {
				return nil, e
			}
			return body, nil
		default:
		}
		if err := s.failed(); err != nil {
			return nil, err
		}
		return nil, violated("the plugin ended without an answer")
	case <-timer.C:
		return nil, violated("no answer within %v", s.timeout)
	}
}

// read takes the plugin's frames until they end, and hands them to who waits.
func (s *Session) read(r io.Reader) {
	defer close(s.ended)
	frames := wire.NewFrameReader(r)
	for {
		frame, err := frames.Next(nil)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				s.fail(violated("the plugin's output: %v", err))
			}
			return
		}
		if err := s.take(frame); err != nil {
			s.fail(err)
		}
	}
}

func (s *Session) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault == nil {
		s.fault = err
	}
}

// take holds a frame to the protocol and hands it on.
func (s *Session) take(frame []byte) error {
	var e wire.Envelope
	if err := wire.Scan(frame, &e); err != nil {
		return violated("a frame of the plugin: %v", err)
	}
	body := wire.NewBody(e.Type)
	if err := wire.Decode(e.Body, body); err != nil {
		return violated("%s of the plugin: %v", e.Type, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m, _ := e.Type.Describe()
	switch {
	case e.Sequence != s.last+1:
		return violated("sequence %d follows %d", e.Sequence, s.last)
	case !m.MaySend(wire.Plugin):
		return violated("a plugin does not send %s", e.Type)
	case s.Hello != nil && !s.agreed.Features.Has(m.Feature):
		return violated("%s, although %s is not on", e.Type, m.Feature)
	}
	s.last = e.Sequence
	if id, ok := requestOf(body); ok {
		call := s.calls[id]
		if call == nil {
			return violated("%s for a request that was never sent", e.Type)
		}
		return call.take(body, len(frame))
	}
	if answer := s.answers[e.CausationID.UUID]; e.CausationID.Set && answer != nil {
		delete(s.answers, e.CausationID.UUID)
		answer <- body
		return nil
	}
	switch b := body.(type) {
	case *wire.HealthReport:
		select {
		case s.health <- plugin.HealthReport{Status: plugin.HealthStatus(b.Status), Message: b.Message, UpdatedAtUTC: b.UpdatedAt}:
		default:
		}
	case *wire.Error:
		return b
	case *wire.Beat:
		go s.Send(&wire.BeatAck{Nonce: b.Nonce})
	}
	return nil
}

// requestOf returns the request that a frame is about.
func requestOf(body wire.Body) (wire.UUID, bool) {
	switch b := body.(type) {
	case *wire.Response:
		return b.RequestID, true
	case *wire.Error:
		return b.RequestID.UUID, b.RequestID.Set
	case *wire.Cancelled:
		return b.RequestID, true
	case *wire.ProgressUpdate:
		return b.RequestID, true
	case *wire.StreamItem:
		return b.RequestID, true
	case *wire.StreamEnd:
		return b.RequestID, true
	case *wire.Flow:
		return b.RequestID, true
	}
	return wire.UUID{}, false
}

// Health asks the plugin how it is. With watch, changes can be read from
// HealthChanges from then on.
func (s *Session) Health(watch bool) (plugin.HealthReport, error) {
	answer, err := s.ask(&wire.HealthCheck{Watch: watch})
	if err != nil {
		return plugin.HealthReport{}, err
	}
	b, ok := answer.(*wire.HealthReport)
	if !ok {
		return plugin.HealthReport{}, violated("healthCheck was answered with %s", answer.Type())
	}
	return plugin.HealthReport{Status: plugin.HealthStatus(b.Status), Message: b.Message, UpdatedAtUTC: b.UpdatedAt}, nil
}

// HealthChanges are the reports that the plugin sent without being asked.
func (s *Session) HealthChanges() <-chan plugin.HealthReport { return s.health }

// ValidateSettings asks whether the plugin could work with settings, and returns what
// it would use, or a *plugin.SettingsError.
func (s *Session) ValidateSettings(settings any) (json.RawMessage, error) {
	raw, err := json.Marshal(settings)
	if err != nil {
		return nil, err
	}
	answer, err := s.ask(&wire.SettingsToValidate{Settings: raw})
	if err != nil {
		return nil, err
	}
	b, ok := answer.(*wire.SettingsValidated)
	if !ok {
		return nil, violated("settingsValidate was answered with %s", answer.Type())
	}
	if b.Valid {
		return b.Normalized, nil
	}
	refused := &plugin.SettingsError{}
	for _, p := range b.Problems {
		refused.Problems = append(refused.Problems, plugin.SettingsProblem{Path: p.Path, Message: p.Message})
	}
	return nil, refused
}

// Receipt asks for a receipt. If there is none the error is a *wire.Error with
// not_found.
func (s *Session) Receipt(q *wire.ReceiptQuery) (*plugin.OperationReceipt, error) {
	answer, err := s.ask(q)
	if err != nil {
		return nil, err
	}
	r, ok := answer.(*wire.Receipt)
	if !ok {
		return nil, violated("receiptQuery was answered with %s", answer.Type())
	}
	return r, nil
}

// Heartbeat asks whether the plugin is alive.
func (s *Session) Heartbeat() error {
	nonce := wire.NewUUID().String()
	answer, err := s.ask(&wire.Beat{Nonce: nonce})
	if err != nil {
		return err
	}
	if b, ok := answer.(*wire.BeatAck); !ok || b.Nonce != nonce {
		return fmt.Errorf("heartbeat: %w", violated("another answer"))
	}
	return nil
}
