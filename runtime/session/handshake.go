package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// handshake takes the connection from DISCONNECTED to READY.
func (c *Client) handshake(ctx context.Context) error {
	c.mu.Lock()
	err := errors.Join(c.state.Move(wire.ConnectionConnecting), c.life.Move(wire.LifecycleLoaded), c.life.Move(wire.LifecycleStarting))
	c.mu.Unlock()
	if err != nil {
		return err
	}
	hello, err := c.hello()
	if err != nil {
		return err
	}
	digest, err := wire.Digest(c.opts.Settings)
	if err != nil {
		return &BadRequest{wire.Fault{Code: wire.CodeInvalidArgument, Message: "the settings are no JSON that can be sent: " + err.Error()}}
	}
	go c.read()
	c.out.agree(hello.Protocol.Max, wire.DefaultMaxFrame)

	// hello: what comes back is held against what was offered and what was reviewed.
	_, err = c.question(ctx, hello, wire.TypeHelloAck, wire.ConnectionNegotiating, func(a *answer) error {
		ack, f := readAnswer[wire.HelloAck](a)
		if f != nil {
			return f
		}
		return c.choose(hello, ack, a.version)
	})
	if err != nil {
		return c.handshakeFault(ctx, wire.TypeHello, err)
	}

	// init: the terms under which the plugin works.
	terms := &wire.Init{
		InstanceID: c.opts.InstanceID, Grants: c.opts.Grants, Settings: c.opts.Settings, SettingsDigest: digest,
		Limits: c.opts.Limits, AcceptedClasses: c.opts.AcceptedClasses,
	}
	_, err = c.question(ctx, terms, wire.TypeInitAck, "", func(a *answer) error {
		ack, f := readAnswer[wire.InitAck](a)
		if f != nil {
			return f
		}
		return c.begin(ack)
	})
	if err != nil {
		return c.handshakeFault(ctx, wire.TypeInit, err)
	}
	c.beat()
	return nil
}

// hello returns what is offered: only versions that keep what the manifest declares.
func (c *Client) hello() (*wire.Hello, error) {
	p := &c.opts.Peer
	offer := wire.Offer{Protocol: p.Protocol, Features: p.Features, Needs: p.Needs, MaxFrameBytes: c.opts.MaxFrameBytes}
	own := wire.VersionRange{Min: wire.MinVersion, Max: wire.MaxVersion}
	if r := offer.Range(); r.Min.Compare(r.Max) > 0 || r.Min.Major != r.Max.Major || r.Max.Compare(own.Min) < 0 {
		return nil, &Fault{Code: wire.CodeUnsupportedProtocol, Text: fmt.Sprintf(
			"the manifest speaks the versions %s to %s and needs %s; this host speaks %s to %s", p.Protocol.Min, p.Protocol.Max, r.Min, own.Min, own.Max)}
	}
	requires := slices.Clone(p.Needs)
	for _, f := range c.opts.Requires {
		if !slices.Contains(requires, f) {
			requires = append(requires, f)
		}
	}
	supports := []wire.Feature{}
	for _, f := range features {
		if !slices.Contains(requires, f) {
			supports = append(supports, f)
		}
	}
	if requires == nil {
		requires = []wire.Feature{}
	}
	return &wire.Hello{HostVersion: c.opts.HostVersion, Protocol: own, Requires: requires, Supports: supports,
		Codecs: []string{wire.CodecJSON}, MaxFrameBytes: c.opts.MaxFrameBytes}, nil
}

// choose judges helloAck. It runs on the reading goroutine, before the next frame is
// read, so that the limits hold from that one on.
func (c *Client) choose(hello *wire.Hello, ack *wire.HelloAck, stated wire.Version) error {
	const t = wire.TypeHelloAck
	p := &c.opts.Peer
	agreed, refusal := wire.Confirm(hello, ack)
	if refusal != nil {
		f := &Fault{Code: refusal.Code, Rule: refusal.Code, Message: t, Text: refusal.Message}
		if refusal.Code == wire.CodeStateViolation {
			f.Code = wire.CodePluginMalformed
		}
		return f
	}
	// Both ends know the manifest, so that both know the one right choice.
	offer := wire.Offer{Protocol: p.Protocol, Features: p.Features, Needs: p.Needs, MaxFrameBytes: c.opts.MaxFrameBytes}
	right := offer.Range()
	if right.Max.Compare(hello.Protocol.Max) > 0 {
		right.Max = hello.Protocol.Max
	}
	if agreed.Version != right.Max {
		return &Fault{Code: wire.CodeUnsupportedProtocol, Rule: wire.CodeUnsupportedProtocol, Message: t, Path: "/protocolVersion",
			Text: fmt.Sprintf("the plugin chose %s where both sides speak %s", agreed.Version, right.Max)}
	}
	if stated != agreed.Version {
		return malformed(t, wire.CodeEnvelopeInvalid, "protocolVersion is %s in the envelope and %s in the body", stated, agreed.Version)
	}
	for _, f := range agreed.Features {
		if !slices.Contains(p.Features, f) {
			return violation(t, "the plugin turned on %s, which its manifest does not declare", f)
		}
	}
	if agreed.Features.Has(wire.CodecCBOR) {
		return violation(t, "the plugin turned on a codec that is not in use")
	}
	for _, m := range []struct{ member, want, got string }{
		{"manifestDigest", p.ManifestDigest, ack.ManifestDigest},
		{"plugin/pluginId", p.Identity.PluginID, ack.Plugin.PluginID},
		{"plugin/publisherId", p.Identity.PublisherID, ack.Plugin.PublisherID},
		{"plugin/packageVersion", p.Identity.PackageVersion, ack.Plugin.PackageVersion},
	} {
		if m.want != m.got {
			return mismatch(t, m.member, m.want, m.got)
		}
	}
	c.agreed, c.first = agreed, *ack
	c.out.agree(agreed.Version, int(agreed.MaxFrameBytes))
	c.frames.SetMax(int(agreed.MaxFrameBytes))
	return c.move(wire.ConnectionInitializing)
}

// begin judges initAck: what the plugin offers is what was reviewed.
func (c *Client) begin(ack *wire.InitAck) error {
	want, got := capabilities(c.opts.Peer.Capabilities), capabilities(ack.Capabilities)
	if want != got {
		return mismatch(wire.TypeInitAck, "capabilities", want, got)
	}
	c.begun = *ack
	if err := c.move(wire.ConnectionReady); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.life.Move(wire.LifecycleReady); err != nil {
		return err
	}
	if ack.Status == wire.InitDegraded {
		return c.life.Move(wire.LifecycleDegraded)
	}
	return nil
}

// capabilities writes a list of them without regard to order.
func capabilities(list []wire.Capability) string {
	var all []string
	for _, c := range list {
		all = append(all, c.ID+" "+c.Version)
		for _, o := range c.Operations {
			all = append(all, c.ID+"/"+o.Name+" "+o.OperationVersion)
		}
	}
	sort.Strings(all)
	return strings.Join(all, ", ")
}

func mismatch(t wire.MessageType, member, want, got string) *Fault {
	return &Fault{Code: wire.CodeIdentityMismatch, Rule: wire.CodeIdentityMismatch, Message: t, Path: "/" + member,
		Text: fmt.Sprintf("is not what was reviewed: expected %s, found %s", shown(want), shown(got))}
}

// move changes the state of the connection; what its table lacks is a fault of the
// plugin, which sent what would have made it.
func (c *Client) move(to wire.State) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.state.Move(to); err != nil {
		return broken("", err)
	}
	return nil
}

// handshakeFault ends a handshake: it tells the plugin why, where the fault is its, and
// explains a context that ended.
func (c *Client) handshakeFault(ctx context.Context, step wire.MessageType, err error) error {
	var f *Fault
	var said *wire.Error
	switch {
	case errors.As(err, &f):
	case errors.As(err, &said):
		f = endedBy(said)
	case ctx.Err() != nil:
		f = &Fault{Code: wire.CodePluginTimeout, Message: step, Text: "the plugin did not answer in time", Cause: context.Cause(ctx)}
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			f.Code, f.Text = wire.CodeUnavailable, "the host gave up waiting for the answer"
		}
	default:
		return err
	}
	c.fail(f)
	if first := c.Err(); first != nil {
		return first
	}
	return f
}
