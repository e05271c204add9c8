// Package session is the host's side of one connection of the session protocol
// (docs/protocol-session.md): it negotiates, initializes, carries many requests at
// once with their streams, credits, progress and cancellation, watches that the
// plugin is alive, and ends in order, or says as a *Fault what the plugin did wrong.
//
// What a plugin may make the host keep is bounded, whatever it sends: one frame being
// read, the granted credit of each stream, the newest progress of each request, a fixed
// number of ended requests and of messages that answer nothing. A fault of the plugin
// ends this session and nothing else.
//
// The package refuses to know about processes, trust, grants' origin and records, to
// repair or skip anything on the wire, and to send a request a second time.
package session

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/switchyard-plugins/switchyard/runtime/process/redact"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// Defaults of Options.
const (
	DefaultRequestTimeout    = 15 * time.Second
	DefaultHeartbeatInterval = 10 * time.Second
	DefaultMaxInFlight       = 32
	DefaultGrace             = 3 * time.Second
	DefaultWindowItems       = 1024
	windowSlack              = 1 << 20 // bytes of credit beyond the largest frame
)

// Bounds of what a plugin may send beside its answers.
const (
	maxAsks        = 64 // questions without an answer
	maxNotices     = 64 // errors that concern no request
	maxBeats       = 32 // heartbeats at once; more come back at beatsPerSecond
	beatsPerSecond = 20
	lateAllowance  = 1024 // frames of ended requests, beyond what was in flight for them
	rememberEnded  = 16384
)

// A Validator holds a value against a schema. The fault has a code of the schema.*
// family and the path in the value; nil means that the value is good. It must be safe
// for concurrent use and must not keep the value.
type Validator func(value json.RawMessage) *wire.Fault

// An Operation is one that the reviewed manifest declares.
type Operation struct {
	CapabilityID, Name, Version   string
	StreamRequest, StreamResponse bool
	Idempotent, Receipts          bool
	Request, Response             Validator // of the payload, or of each item of a stream; required
	_                             struct{}
}

// A Peer is what was reviewed: the plugin must state exactly this.
type Peer struct {
	Identity       wire.Identity
	ManifestDigest string
	Protocol       wire.VersionRange
	Features       []wire.Feature // that the manifest declares
	Needs          []wire.Feature // without which what it declares cannot be kept
	Capabilities   []wire.Capability
	Operations     []Operation
}

// Window bounds what a response stream may have on its way and in memory. The memory of
// one stream is at most twice that. Bytes are those of frames. A zero member is the
// default: DefaultWindowItems, and the largest frame and one MiB.
type Window struct{ Items, Bytes int64 }

// Options are the terms of a session.
type Options struct {
	HostVersion     string
	Peer            Peer
	Requires        []wire.Feature // beside those that the peer needs
	InstanceID      string
	Grants          []wire.Grant
	Settings        json.RawMessage // an object; nil is {}
	AcceptedClasses []wire.PayloadClass
	Limits          wire.Limits   // zero members are the defaults
	MaxFrameBytes   int64         // 0: wire.DefaultMaxFrame
	Grace           time.Duration // from a cancel to giving a request up; 0: DefaultGrace
	// Masked are the secrets that the plugin is given. Where its errors, progress and
	// health tell one, it is masked.
	Masked *redact.Values
	// Now is the wall clock, for what is written on the wire. Durations are measured on
	// the monotonic clock, so that a step of this one ends nothing early or late. nil:
	// time.Now.
	Now func() time.Time
}

// features are all that this host knows.
var features = []wire.Feature{
	wire.HealthWatch, wire.TransportUnix, wire.Cancel, wire.Progress, wire.FlowCredit, wire.Receipts,
	wire.ReceiptSignature, wire.Heartbeat, wire.SecretsInject, wire.SettingsValidate,
}

func (o *Options) complete() {
	def := func(p *int64, d int64) {
		if *p <= 0 {
			*p = d
		}
	}
	def(&o.Limits.RequestTimeoutMs, DefaultRequestTimeout.Milliseconds())
	def(&o.Limits.HeartbeatIntervalMs, DefaultHeartbeatInterval.Milliseconds())
	def(&o.Limits.MaxInFlight, DefaultMaxInFlight)
	def(&o.MaxFrameBytes, wire.DefaultMaxFrame)
	if o.Grace <= 0 {
		o.Grace = DefaultGrace
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if len(o.Settings) == 0 {
		o.Settings = json.RawMessage("{}")
	}
	if o.AcceptedClasses == nil {
		o.AcceptedClasses = []wire.PayloadClass{}
	}
	if o.Grants == nil {
		o.Grants = []wire.Grant{}
	}
}

// Errors of the caller: nothing was sent, and the session goes on.
var (
	// ErrDraining reports that the session takes no requests any more.
	ErrDraining = errors.New("the session takes no more requests")
	// ErrClosed reports that the session was closed by this side.
	ErrClosed = errors.New("the session is closed")
	// ErrFeature reports a question that this connection's features do not have.
	ErrFeature = errors.New("the feature is not on in this session")
	// ErrBusy reports too many questions that the plugin has not answered.
	ErrBusy = errors.New("too many questions are unanswered")
)

// A Client is the host's side of one connection. All methods may be called from any
// goroutine. The caller must call Close.
type Client struct {
	opts   Options
	conn   io.ReadWriteCloser
	frames *wire.FrameReader
	out    *outbox
	slots  chan struct{}        // one for each request in flight
	ops    map[string]Operation // by capability and name
	agreed wire.Agreed          // set before the connection is initializing
	first  wire.HelloAck
	begun  wire.InitAck

	readDone chan struct{} // the plugin's end is closed, or nobody listens
	over     chan struct{} // the session takes and gives nothing any more
	overOnce sync.Once

	mu       sync.Mutex
	state    wire.Machine // connection
	life     wire.Machine // lifecycle
	stopping wire.Machine // shutdown
	calls    map[wire.UUID]*Call
	ended    ended
	asks     map[wire.UUID]*ask // by the question's messageId
	watchers map[*watcher]struct{}
	watches  map[wire.UUID]bool // messageIds of the questions that began a watch
	idle     chan struct{}      // closed when nothing is in flight; nil while nobody waits
	away     *Away              // the plugin's goAway
	fault    *Fault             // why the session failed
	counts   Counts
	budget   int // late frames that are still borne
	beats    beats

	turn turn

	// Of whoever has the turn alone.
	buf      []byte
	envelope wire.Envelope
	sequence uint64 // of the last frame
	seen     wire.Seen
	bucket   bucket
	scratch  wire.StreamItem
	head     head
}

// Counts are what was borne and not acted upon.
type Counts struct {
	LateFrames int // of requests that had ended
	Notices    int // errors that concern no request and end nothing
	Frames     int // received in all
}

// Away is what the plugin announced with goAway.
type Away struct {
	LastAcceptedSequence int64
	Reason               string
	Grace                time.Duration
}

// Open negotiates and initializes a session over conn. When it fails, conn is closed.
// The error is a *Fault, or what ctx ended with as a *Fault with plugin.timeout, or the
// caller's own mistake.
//
// Reads and writes of conn are interrupted by Close alone. If conn has CloseWrite, an
// orderly end closes that direction first.
func Open(ctx context.Context, conn io.ReadWriteCloser, opts Options) (*Client, error) {
	opts.complete()
	c := &Client{
		opts: opts, conn: conn,
		slots: make(chan struct{}, opts.Limits.MaxInFlight), ops: make(map[string]Operation, len(opts.Peer.Operations)),
		readDone: make(chan struct{}), over: make(chan struct{}),
		state: wire.Connection.Start(), life: wire.Lifecycle.Start(), stopping: wire.Shutdown.Start(),
		calls: make(map[wire.UUID]*Call), asks: make(map[wire.UUID]*ask),
		watchers: make(map[*watcher]struct{}), watches: make(map[wire.UUID]bool), budget: lateAllowance,
		bucket: bucket{level: maxBeats, last: time.Now()},
	}
	c.turn.init(conn)
	c.head.r = conn
	c.frames = wire.NewFrameReader(&c.head)
	for _, op := range opts.Peer.Operations {
		if op.Request == nil || op.Response == nil {
			conn.Close()
			return nil, errors.New("session: an operation without schemas")
		}
		c.ops[op.CapabilityID+"/"+op.Name] = op
	}
	c.out = newOutbox(conn, opts.Now, func(err error) { c.fail(c.gone(err)) })
	if err := c.handshake(ctx); err != nil {
		c.abort()
		return nil, err
	}
	return c, nil
}

// Agreed returns what the negotiation came to.
func (c *Client) Agreed() wire.Agreed { return c.agreed }

// Deprecations returns what the plugin says of the elements that will go.
func (c *Client) Deprecations() []wire.Deprecation { return c.first.Deprecations }

// Start returns how the plugin began: ready or degraded, and why.
func (c *Client) Start() (status, message string) { return c.begun.Status, c.begun.Message }

// State returns where the connection is.
func (c *Client) State() wire.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.State()
}

// Lifecycle returns where the plugin's life is, as far as the connection shows it.
func (c *Client) Lifecycle() wire.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.life.State()
}

// Counts returns what was borne so far.
func (c *Client) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts
}

// Away returns the plugin's goAway, or nil.
func (c *Client) Away() *Away {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.away
}

// Done is closed when the session is over: it failed, or was closed.
func (c *Client) Done() <-chan struct{} { return c.over }

// Err returns why the session failed, a *Fault, or nil.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fault == nil {
		return nil
	}
	return c.fault
}

// has reports whether a feature is on.
func (c *Client) has(f wire.Feature) bool { return c.agreed.Features.Has(f) }
