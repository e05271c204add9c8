package session

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// digest of nothing in particular: the peer states what was reviewed.
const reviewed = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

var identity = wire.Identity{PluginID: "com.example.test", PublisherID: "org.example", PackageVersion: "1.0.0"}

// anything accepts every value but {"wrong":…}.
func anything(v json.RawMessage) *wire.Fault {
	var object map[string]any
	if json.Unmarshal(v, &object) == nil && object["wrong"] != nil {
		return &wire.Fault{Code: wire.CodeSchemaMismatch, Path: "/wrong", Message: "must not be there"}
	}
	return nil
}

func operation(name string, in, out bool) Operation {
	return Operation{CapabilityID: "test.ops", Name: name, Version: "1.0", StreamRequest: in, StreamResponse: out,
		Idempotent: true, Receipts: true, Request: anything, Response: anything}
}

func testPeer() Peer {
	ops := []Operation{operation("echo", false, false), operation("count", false, true), operation("sum", true, false), operation("relay", true, true)}
	capability := wire.Capability{ID: "test.ops", Version: "1.0.0"}
	for _, o := range ops {
		capability.Operations = append(capability.Operations, wire.OperationVersion{Name: o.Name, OperationVersion: o.Version})
	}
	return Peer{
		Identity: identity, ManifestDigest: reviewed, Protocol: wire.VersionRange{Min: wire.Version{Major: 1}, Max: wire.Version{Major: 1, Minor: 2}},
		Features: []wire.Feature{wire.HealthWatch, wire.Cancel, wire.Progress, wire.FlowCredit, wire.Receipts, wire.Heartbeat, wire.SecretsInject, wire.SettingsValidate},
		Needs:    []wire.Feature{wire.FlowCredit}, Capabilities: []wire.Capability{capability}, Operations: ops,
	}
}

func testOptions() Options {
	return Options{HostVersion: "1.0.0", Peer: testPeer(), InstanceID: "test", AcceptedClasses: []wire.PayloadClass{wire.ClassPublic, wire.ClassInternal},
		Limits: wire.Limits{HeartbeatIntervalMs: 60_000, RequestTimeoutMs: 30_000}}
}

// duplex is one end of a connection whose directions can be closed apart.
type duplex struct {
	net.Conn // what is read
	out      net.Conn
}

func (d *duplex) Write(b []byte) (int, error) { return d.out.Write(b) }
func (d *duplex) CloseWrite() error           { return d.out.Close() }
func (d *duplex) Close() error                { return errors.Join(d.out.Close(), d.Conn.Close()) }

func connection() (host, plugin *duplex) {
	toPlugin, fromHost := net.Pipe()
	toHost, fromPlugin := net.Pipe()
	return &duplex{toHost, fromHost}, &duplex{toPlugin, fromPlugin}
}

// A scripted plugin: it does what the test says, right or wrong.
type scripted struct {
	t        *testing.T
	conn     *duplex
	frames   *wire.FrameReader
	version  wire.Version
	sequence uint64
	write    sync.Mutex
}

// got is one frame from the host, copied.
type got struct {
	wire.Envelope
	size int
}

func newScripted(t *testing.T, conn *duplex) *scripted {
	return &scripted{t: t, conn: conn, frames: wire.NewFrameReader(conn), version: wire.MaxVersion}
}

// next reads one frame, which must be of the type.
func (p *scripted) next(want wire.MessageType) got {
	p.t.Helper()
	g, err := p.read()
	if err != nil {
		p.t.Fatalf("waiting for %s: %v", want, err)
	}
	if g.Type != want {
		p.t.Fatalf("got %s %s, want %s", g.Type, g.Body, want)
	}
	return g
}

func (p *scripted) read() (got, error) {
	frame, err := p.frames.Next(nil)
	if err != nil {
		return got{}, err
	}
	var g got
	if err := wire.Scan(frame, &g.Envelope); err != nil {
		p.t.Errorf("the host sent %s: %v", frame, err)
	}
	g.size = len(frame)
	return g, nil
}

// drain reads and drops frames until the host closes its end.
func (p *scripted) drain() {
	for {
		if _, err := p.read(); err != nil {
			return
		}
	}
}

func decode[T any, P interface {
	*T
	wire.Body
}](t *testing.T, g got) T {
	t.Helper()
	var body T
	if err := wire.Decode(g.Body, P(&body)); err != nil {
		t.Fatalf("the host sent %s: %v", g.Body, err)
	}
	return body
}

// envelope returns the frame of a body, and sends nothing.
func (p *scripted) frame(body wire.Body, cause wire.NullUUID, change func(*wire.Envelope)) []byte {
	p.sequence++
	e := wire.Envelope{Version: p.version, MessageID: wire.NewUUID(), Sequence: p.sequence, Timestamp: time.Now(), CausationID: cause}
	if change != nil {
		change(&e)
	}
	return wire.AppendMessage(nil, &e, body)
}

func (p *scripted) send(body wire.Body, cause ...got) int {
	var id wire.NullUUID
	if len(cause) > 0 {
		id = wire.Some(cause[0].MessageID)
	}
	p.write.Lock()
	defer p.write.Unlock()
	return p.raw(p.frame(body, id, nil))
}

// raw writes a frame around bytes; a host that has hung up is no failure.
func (p *scripted) raw(frame []byte) int {
	_ = wire.WriteFrame(p.conn, frame, wire.MaxMaxFrame)
	return len(frame)
}

// ack is the right answer to a hello.
func (p *scripted) ack() *wire.HelloAck {
	peer := testPeer()
	return &wire.HelloAck{ProtocolVersion: p.version, EnabledFeatures: peer.Features, Requires: peer.Needs, Codec: wire.CodecJSON,
		MaxFrameBytes: wire.DefaultMaxFrame, ManifestDigest: reviewed, Plugin: identity, Deprecations: []wire.Deprecation{}}
}

func (p *scripted) greet() {
	p.t.Helper()
	p.send(p.ack(), p.next(wire.TypeHello))
	p.send(&wire.InitAck{Status: wire.InitReady, Capabilities: testPeer().Capabilities}, p.next(wire.TypeInit))
}

// request reads a request.
func (p *scripted) request() (got, wire.Request) {
	p.t.Helper()
	g := p.next(wire.TypeRequest)
	return g, decode[wire.Request](p.t, g)
}

func (p *scripted) answer(g got, r wire.Request, payload string) {
	p.send(&wire.Response{RequestID: r.RequestID, OperationID: r.OperationID, PayloadClass: wire.ClassInternal, Payload: json.RawMessage(payload)}, g)
}

func (p *scripted) item(r wire.Request, index int64, payload string) int {
	return p.send(&wire.StreamItem{RequestID: r.RequestID, OperationID: r.OperationID, Index: index, Payload: json.RawMessage(payload)})
}

func errorFor(r wire.Request, code wire.Code) *wire.Error {
	return &wire.Error{Code: code, Message: "as scripted", BlameDomain: wire.BlamePlugin, Severity: wire.SeverityError,
		RequestID: wire.Some(r.RequestID), OperationID: wire.Some(r.OperationID)}
}

// session runs a test in a bubble of its own time: the plugin's script on one goroutine,
// the host's on another. A goroutine that either leaves is a failure.
func session(t *testing.T, opts Options, plugin func(*scripted), host func(*testing.T, *Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		conn, far := connection()
		over := make(chan struct{})
		go func() {
			defer close(over)
			defer far.Close()
			p := newScripted(t, far)
			p.greet()
			plugin(p)
		}()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		c, err := Open(ctx, conn, opts)
		if err != nil {
			t.Fatal(err)
		}
		host(t, c)
		c.Close()
		<-over
	})
}

// do sends a request that must be sendable.
func do(t *testing.T, c *Client, r Request) *Call {
	t.Helper()
	call, err := c.Do(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return call
}

func echo(payload string) Request {
	return Request{CapabilityID: "test.ops", OperationName: "echo", Payload: json.RawMessage(payload)}
}

func named(operation string) Request {
	return Request{CapabilityID: "test.ops", OperationName: operation}
}

// faultOf returns the fault in err, which must be one with this rule.
func faultOf(t *testing.T, err error, code, rule wire.Code) *Fault {
	t.Helper()
	var f *Fault
	if !errors.As(err, &f) {
		t.Fatalf("got %v (%T), want a fault with %s", err, err, rule)
	}
	if f.Code != code || f.Rule != rule {
		t.Fatalf("got %s/%s: %v, want %s/%s", f.Code, f.Rule, f, code, rule)
	}
	return f
}
