package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/switchyard-plugins/switchyard/schemas/subset"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/internal/strict"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// hello negotiates.
func (c *connection) hello(e *wire.Envelope) error {
	var h wire.Hello
	if err := wire.Decode(e.Body, &h); err != nil {
		return err
	}
	c.state.Move(wire.ConnectionNegotiating)
	pkg := c.plugin.Package
	offer := pkg.offer(wire.DefaultMaxFrame)
	agreed, refusal := wire.Accept(&h, offer)
	if refusal != nil {
		return refusal
	}
	c.features, c.greeted = agreed.Features, agreed.Version
	c.out.agree(agreed.Version, int(agreed.MaxFrameBytes))
	c.frames.SetMax(int(agreed.MaxFrameBytes))
	c.state.Move(wire.ConnectionInitializing)
	c.reply(e, agreed.Ack(offer, pkg.Digest, pkg.identity(), pkg.deprecations()))
	return nil
}

// initialize takes what the host says of the session. What the plugin does with it
// happens beside the reading, so that heartbeats are answered meanwhile.
func (c *connection) initialize(e *wire.Envelope) error {
	c.begun = true
	c.init = new(wire.Init)
	if err := wire.Decode(e.Body, c.init); err != nil {
		return err
	}
	if digest, err := wire.Digest(c.init.Settings); err != nil || digest != c.init.SettingsDigest {
		return refuse(wire.CodeInvalidArgument, "settingsDigest is not the digest of the settings")
	}
	e = &wire.Envelope{MessageID: e.MessageID, TraceID: e.TraceID}
	c.spawn(func() {
		ack, err := c.begin()
		if err != nil {
			c.fatal(e, err)
			return
		}
		c.mu.Lock()
		c.ready = true
		c.mu.Unlock()
		c.reply(e, ack)
	})
	return nil
}

// begin puts the settings in force and starts the plugin's own parts.
func (c *connection) begin() (*wire.InitAck, error) {
	normalized, problems, err := c.validSettings(c.init.Settings)
	if err != nil {
		return nil, err
	}
	if len(problems) > 0 {
		p := problems[0]
		fault := refuse(p.code, "the settings are not valid: %s %s", p.Path, p.Message)
		return nil, fault
	}
	c.settings = normalized
	if c.plugin.started != nil {
		if _, err := guarded(func() (struct{}, error) { return struct{}{}, c.plugin.started(c.ctx, bytes.Clone(normalized)) }); err != nil {
			var meant *PluginError
			if errors.As(err, &meant) {
				code := usable(meant.Code)
				return nil, &wire.Error{Code: code, Message: shortened(meant.Message), Retryable: meant.Retryable, BlameDomain: code.Blame(wire.BlamePlugin), Severity: wire.SeverityFatal}
			}
			logf("the plugin does not start")
			return nil, wire.Fatal(wire.CodeInternal, wire.BlamePlugin, "the plugin does not start")
		}
	}
	ack := &wire.InitAck{Status: wire.InitReady, Capabilities: c.plugin.Package.capabilities()}
	if health := wireHealth(c.plugin.currentHealth(c.ctx)); health.Status != wire.Healthy {
		ack.Status, ack.Message = wire.InitDegraded, health.Message
	}
	return ack, nil
}

// A settingsFault is a problem and the code that it has when it is an error.
type settingsFault struct {
	SettingsProblem
	code wire.Code
}

// validSettings holds settings to the manifest's schema and then to the plugin. It
// returns what the plugin would use, or problems. The error is fit to be sent.
func (c *connection) validSettings(settings json.RawMessage) (json.RawMessage, []settingsFault, error) {
	if s := c.plugin.Package.Manifest.Settings; s != nil && s.Schema != nil {
		var faults []settingsFault
		for _, p := range c.plugin.Package.schemas[s.Schema.URI].Validate(settings) {
			faults = append(faults, settingsFault{SettingsProblem{p.Pointer, p.Message}, schemaCode(p)})
		}
		if faults != nil {
			return nil, faults, nil
		}
	}
	if c.plugin.settings == nil {
		return settings, nil, nil
	}
	value, err := guarded(func() (any, error) { return c.plugin.settings(c.ctx, bytes.Clone(settings)) })
	var bad *SettingsError
	switch {
	case errors.As(err, &bad):
		faults := []settingsFault{}
		for _, p := range bad.Problems {
			faults = append(faults, settingsFault{p, wire.CodeInvalidArgument})
		}
		if len(faults) == 0 {
			faults = append(faults, settingsFault{SettingsProblem{"", "the settings are not valid"}, wire.CodeInvalidArgument})
		}
		return nil, faults, nil
	case err != nil:
		logf("the settings validator failed")
		return nil, nil, wire.Fatal(wire.CodeInternal, wire.BlamePlugin, "the plugin's own check of the settings failed")
	}
	normalized, err := encodeValue(value)
	if err != nil || len(normalized) == 0 || normalized[0] != '{' {
		logf("the settings validator returned no object")
		return nil, nil, wire.Fatal(wire.CodeInternal, wire.BlamePlugin, "the plugin's own check of the settings returned no object")
	}
	return normalized, nil, nil
}

func (c *connection) settingsValidate(e *wire.Envelope, b *wire.SettingsToValidate) {
	cause, trace, settings := e.MessageID, e.TraceID, b.Settings
	c.spawn(func() {
		answer := &wire.SettingsValidated{Problems: []wire.SettingsProblem{}}
		normalized, faults, err := c.validSettings(settings)
		var failed *wire.Error
		if errors.As(err, &failed) {
			failed.Severity = wire.SeverityError
			c.out.send(failed, dispatch{trace: trace, cause: wire.Some(cause)})
			return
		}
		if len(faults) == 0 {
			answer.Valid, answer.Normalized = true, normalized
		}
		for _, f := range faults {
			answer.Problems = append(answer.Problems, wire.SettingsProblem{Path: f.Path, Message: shortened(f.Message)})
		}
		c.out.send(answer, dispatch{trace: trace, cause: wire.Some(cause)})
	})
}

// schemaCode returns the code of the protocol for a problem of a value.
func schemaCode(p subset.Problem) wire.Code {
	switch p.Code {
	case subset.CodeUnknownMember:
		return wire.CodeSchemaUnknownMember
	case subset.CodeWork:
		return wire.CodeResourceExhausted
	}
	return wire.CodeSchemaMismatch
}

// encodeValue makes JSON of what a handler returned, by the value rules.
func encodeValue(v any) (json.RawMessage, error) {
	raw, ok := v.(json.RawMessage)
	if !ok {
		var err error
		if raw, err = json.Marshal(v); err != nil {
			return nil, err
		}
	}
	if len(raw) == 0 {
		raw = json.RawMessage("null")
	}
	if err := strict.Check(raw); err != nil {
		return nil, err
	}
	return bytes.Trim(raw, " \t\r\n"), nil
}

// guarded calls a function of the plugin's author; a panic becomes an error whose
// text must not be sent.
func guarded[T any](f func() (T, error)) (result T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &panicked{value: fmt.Sprint(r)}
		}
	}()
	return f()
}

// A panicked is a panic of a handler.
type panicked struct{ value string }

func (p *panicked) Error() string { return "panic: " + p.value }

// shortened returns a text for people that fits into a message.
func shortened(text string) string {
	text = strings.TrimSpace(strict.Clean(text))
	n := 0
	for i := range text {
		if n == wire.MaxMessage {
			return text[:i]
		}
		n++
	}
	return text
}

// usable returns the code of an error that a plugin may give, or internal.
func usable(code wire.Code) wire.Code {
	rule, known := code.Rule()
	if !known || rule.Fatal || code == wire.CodeFlowControlViolation {
		return wire.CodeInternal
	}
	return code
}

// unwatch forgets the connection.
func (p *SessionPlugin) unwatch(c *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.watchers, c)
}

func (c *connection) healthCheck(e *wire.Envelope, b *wire.HealthCheck) error {
	if b.Watch {
		if !c.features.Has(wire.HealthWatch) {
			return refuse(wire.CodeStateViolation, "a watch needs the feature %s, which is not on", wire.HealthWatch)
		}
		c.mu.Lock()
		c.watch, c.watched = wire.Some(e.MessageID), e.TraceID
		c.mu.Unlock()
	}
	cause, trace := e.MessageID, e.TraceID
	c.spawn(func() {
		// Watching begins before the answer is made: no change is missed.
		if b.Watch {
			c.plugin.mu.Lock()
			c.plugin.watchers[c] = struct{}{}
			c.plugin.mu.Unlock()
		}
		c.out.send(wireHealth(c.plugin.currentHealth(c.ctx)), dispatch{trace: trace, cause: wire.Some(cause)})
	})
	return nil
}

// healthChanged tells a host that watches.
func (c *connection) healthChanged(h HealthReport) {
	c.mu.Lock()
	d := dispatch{trace: c.watched, cause: c.watch}
	c.mu.Unlock()
	c.out.send(wireHealth(h), d)
}

func (c *connection) receiptQuery(e *wire.Envelope, q *wire.ReceiptQuery) {
	cause, trace := e.MessageID, e.TraceID
	c.spawn(func() {
		d := dispatch{trace: trace, cause: wire.Some(cause)}
		if store := c.plugin.store; store != nil {
			receipt, err := store.Find(q)
			if receipt != nil {
				c.out.send(receipt, d)
				return
			}
			if err != nil {
				logf("receipts: %v", err)
				c.out.send(problem(wire.CodeInternal, wire.BlamePlugin, "the receipts cannot be read"), d)
				return
			}
		}
		c.out.send(problem(wire.CodeNotFound, wire.BlameHost, "there is no such receipt"), d)
	})
}

// problem returns an error that does not end the connection.
func problem(code wire.Code, sender wire.Blame, message string) *wire.Error {
	return &wire.Error{Code: code, Message: shortened(message), Retryable: code.Retryable(false), BlameDomain: code.Blame(sender), Severity: wire.SeverityError}
}

// reply answers a frame.
func (c *connection) reply(e *wire.Envelope, body wire.Body) {
	c.out.send(body, dispatch{trace: e.TraceID, cause: wire.Some(e.MessageID), later: true, answer: true})
}
