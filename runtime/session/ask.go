package session

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// An ask is a question that waits for its one answer.
type ask struct {
	wants    wire.MessageType
	judge    func(*answer) error // on the reading goroutine; its error ends the session
	answered chan *answer        // holds one
}

// An answer is a frame that names a question. Its body is a copy.
type answer struct {
	typ     wire.MessageType
	version wire.Version
	body    json.RawMessage
	failure *wire.Error // instead of the body
	fault   *Fault      // the body is at fault, which ends the question alone
}

func readAnswer[T any, P interface {
	*T
	wire.Body
}](a *answer) (P, *Fault) {
	body := P(new(T))
	if err := wire.Decode(a.body, body); err != nil {
		return nil, broken(a.typ, err)
	}
	return body, nil
}

// question sends a body and waits for its answer. judge, if there is one, sees the
// answer before the next frame is read. next is the state that sending makes, or "". The
// error is a *Fault of the session, a *wire.Error that answers the question, or ctx's.
// An answer that comes after ctx has ended is borne.
func (c *Client) question(ctx context.Context, body wire.Body, wants wire.MessageType, next wire.State, judge func(*answer) error) (*answer, error) {
	a := &ask{wants: wants, judge: judge, answered: make(chan *answer, 1)}
	c.mu.Lock()
	if err := c.usable(); err != nil {
		c.mu.Unlock()
		return nil, err
	}
	if len(c.asks) >= maxAsks {
		c.mu.Unlock()
		return nil, ErrBusy
	}
	if next != "" {
		if err := c.state.Move(next); err != nil {
			c.mu.Unlock()
			return nil, err
		}
	}
	s, err := c.out.add(body, wire.TraceID{}, wire.NullUUID{})
	if err == nil {
		c.asks[s.id] = a
		if h, ok := body.(*wire.HealthCheck); ok && h.Watch {
			c.watches[s.id] = true
		}
	}
	c.mu.Unlock()
	if err != nil {
		return nil, c.why(err)
	}
	c.turn.rouse()
	select {
	case got := <-a.answered:
		switch {
		case got.failure != nil:
			return nil, got.failure
		case got.fault != nil:
			return nil, got.fault
		}
		return got, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-c.over:
		select {
		case got := <-a.answered:
			if got.failure == nil && got.fault == nil {
				return got, nil
			}
		default:
		}
		return nil, c.why(ErrClosed)
	}
}

// usable returns why nothing can be sent, or nil. The caller holds mu.
func (c *Client) usable() error {
	switch {
	case c.fault != nil:
		return c.fault
	case c.state.Is(wire.ConnectionFailed, wire.ConnectionClosed):
		return ErrClosed
	}
	return nil
}

// why returns the fault that ended the session, else err.
func (c *Client) why(err error) error {
	if f := c.Err(); f != nil {
		return f
	}
	return err
}

// settle gives an answer to its question; it runs on the reading goroutine.
func (c *Client) settle(e *wire.Envelope, failure *wire.Error) *Fault {
	c.mu.Lock()
	a, ok := c.asks[e.CausationID.UUID]
	if ok && e.CausationID.Set {
		delete(c.asks, e.CausationID.UUID)
	}
	c.mu.Unlock()
	if !ok || !e.CausationID.Set {
		return violation(e.Type, "it answers no question")
	}
	if failure == nil && a.wants != e.Type {
		return violation(e.Type, "it answers a question whose answer is %s", a.wants)
	}
	got := &answer{typ: e.Type, version: e.Version, body: slices.Clone(e.Body), failure: failure}
	if a.judge != nil && failure == nil {
		if err := a.judge(got); err != nil {
			var f *Fault
			if !errors.As(err, &f) {
				f = broken(e.Type, err)
			}
			if e.Type == wire.TypeHelloAck || e.Type == wire.TypeInitAck || f.Rule.Fatal() {
				return f
			}
			got.fault = f
		}
	}
	a.answered <- got
	return nil
}

// Receipt asks for a receipt by its id or by its tuple. The error is a *wire.Error with
// not_found where there is none.
func (c *Client) Receipt(ctx context.Context, q wire.ReceiptQuery) (*wire.Receipt, error) {
	if !c.has(wire.Receipts) {
		return nil, ErrFeature
	}
	var receipt *wire.Receipt
	_, err := c.question(ctx, &q, wire.TypeReceipt, "", func(a *answer) error {
		r, f := readAnswer[wire.Receipt](a)
		if f != nil {
			return f
		}
		receipt = r
		if q.ReceiptID.Set && r.ReceiptID != q.ReceiptID.UUID ||
			!q.ReceiptID.Set && (r.CapabilityID != q.CapabilityID || r.OperationName != q.OperationName || r.IdempotencyKey != q.IdempotencyKey) {
			return violation(a.typ, "it is another receipt than was asked for")
		}
		return c.ownReceipt(a.typ, r)
	})
	if err != nil {
		return nil, err
	}
	return receipt, nil
}

// ownReceipt refuses a receipt in another plugin's name. A receipt of an earlier version
// of the package is as good as one of this.
func (c *Client) ownReceipt(t wire.MessageType, r *wire.Receipt) error {
	if r == nil {
		return nil
	}
	if id := c.opts.Peer.Identity; r.PluginID != id.PluginID || r.PublisherID != id.PublisherID {
		return &Fault{Code: wire.CodePluginMalformed, Rule: wire.CodeIdentityMismatch, Message: t, Path: "/receipt/pluginId",
			Text: "the receipt names another plugin"}
	}
	return nil
}

// ValidateSettings asks the plugin whether it could work with settings, an object.
func (c *Client) ValidateSettings(ctx context.Context, settings json.RawMessage) (*wire.SettingsValidated, error) {
	if !c.has(wire.SettingsValidate) {
		return nil, ErrFeature
	}
	if _, err := wire.Canonical(settings); err != nil {
		return nil, badRequest(wire.CodeInvalidArgument, "", "the settings are no JSON that can be sent: %v", err)
	}
	var out *wire.SettingsValidated
	_, err := c.question(ctx, &wire.SettingsToValidate{Settings: settings}, wire.TypeSettingsValidated, "", func(a *answer) error {
		v, f := readAnswer[wire.SettingsValidated](a)
		if f != nil {
			return f
		}
		out = v
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Health asks how the plugin is.
func (c *Client) Health(ctx context.Context) (wire.HealthReport, error) {
	return c.health(ctx, &wire.HealthCheck{})
}

func (c *Client) health(ctx context.Context, check *wire.HealthCheck) (wire.HealthReport, error) {
	var report wire.HealthReport
	_, err := c.question(ctx, check, wire.TypeHealth, "", func(a *answer) error {
		h, f := readAnswer[wire.HealthReport](a)
		if f != nil {
			return f
		}
		err := c.observe(h)
		report = *h
		return err
	})
	if err != nil {
		return wire.HealthReport{}, err
	}
	return report, nil
}

// A watcher holds the newest report that has not been shown.
type watcher struct {
	newest *wire.HealthReport
	wake   chan struct{}
}

// WatchHealth asks how the plugin is and from then on calls each with what it says, one
// after the other; of reports that come while each runs only the newest is shown. It
// returns when ctx or the session ends, with the reason. It needs health.watch.v1.
func (c *Client) WatchHealth(ctx context.Context, each func(wire.HealthReport)) error {
	if !c.has(wire.HealthWatch) {
		return ErrFeature
	}
	w := &watcher{wake: make(chan struct{}, 1)}
	c.mu.Lock()
	c.watchers[w] = struct{}{}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.watchers, w)
		c.mu.Unlock()
	}()
	if _, err := c.health(ctx, &wire.HealthCheck{Watch: true}); err != nil {
		return err
	}
	for {
		c.mu.Lock()
		report := w.newest
		w.newest = nil
		c.mu.Unlock()
		if report != nil {
			each(*report)
			continue
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.over:
			return c.why(ErrClosed)
		}
	}
}

// observe takes a report: it moves the lifecycle and shows it to the watchers.
func (c *Client) observe(h *wire.HealthReport) error {
	h.Message = c.opts.Masked.Hide(h.Message)
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.watchers {
		w.newest = h
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
	degraded := c.life.Is(wire.LifecycleDegraded)
	switch {
	case h.Status == wire.Healthy && degraded && len(c.calls) > 0:
		return c.life.Move(wire.LifecycleBusy)
	case h.Status == wire.Healthy && degraded:
		return c.life.Move(wire.LifecycleReady)
	case h.Status != wire.Healthy && c.life.Is(wire.LifecycleReady, wire.LifecycleBusy):
		return c.life.Move(wire.LifecycleDegraded)
	}
	return nil
}

// reported takes a health frame: the answer to a question, or what a watch brings.
func (c *Client) reported(e *wire.Envelope) *Fault {
	c.mu.Lock()
	_, asked := c.asks[e.CausationID.UUID]
	watching := len(c.watches) > 0 && (!e.CausationID.Set || c.watches[e.CausationID.UUID])
	c.mu.Unlock()
	if asked && e.CausationID.Set || !watching {
		return c.settle(e, nil)
	}
	var h wire.HealthReport
	if err := wire.Decode(e.Body, &h); err != nil {
		return c.badBody(e, err)
	}
	if err := c.observe(&h); err != nil {
		return broken(e.Type, err)
	}
	return nil
}
