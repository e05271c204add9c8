package session

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// The plugin goes away: what it did not accept may be sent again, what it accepted goes on.
func TestPluginGoesAway(t *testing.T) {
	session(t, testOptions(), func(p *scripted) {
		g1, r1 := p.request()
		p.request()
		p.send(&wire.GoAway{LastAcceptedSequence: int64(g1.Sequence), Reason: "tired", GraceMs: 1000})
		time.Sleep(time.Second)
		p.answer(g1, r1, `{"done":1}`)
	}, func(t *testing.T, c *Client) {
		first, second := do(t, c, echo(`{}`)), do(t, c, echo(`{}`))
		_, err := second.Result()
		var not *NotAccepted
		if !errors.As(err, &not) || not.Reason != "tired" {
			t.Fatal(err)
		}
		if _, err := c.Do(context.Background(), echo(`{}`)); err != ErrDraining {
			t.Fatal(err)
		}
		if s := c.State(); s != wire.ConnectionDraining {
			t.Fatal(s)
		}
		if result, err := first.Result(); err != nil || string(result.Payload) != `{"done":1}` {
			t.Fatal(result, err)
		}
		<-c.Done() // the plugin closed its end with nothing in flight: no fault
		if err := c.Err(); err != nil {
			t.Fatal(err)
		}
		if err := c.Drain(context.Background(), time.Second); err != nil {
			t.Fatal(err)
		}
	})
}

// A plugin that goes away and then leaves without the answers it owes has crashed.
func TestPluginGoesAwayAndCrashes(t *testing.T) {
	session(t, testOptions(), func(p *scripted) {
		g, _ := p.request()
		p.send(&wire.GoAway{LastAcceptedSequence: int64(g.Sequence), Reason: "tired"})
	}, func(t *testing.T, c *Client) {
		_, err := do(t, c, echo(`{}`)).Result()
		faultOf(t, err, wire.CodePluginCrashed, "")
	})
}

// The host's orderly end: goAway, the answers, then its direction closes.
func TestDrain(t *testing.T) {
	session(t, testOptions(), func(p *scripted) {
		g, r := p.request()
		away := decode[wire.GoAway](p.t, p.next(wire.TypeGoAway))
		if away.LastAcceptedSequence != int64(p.sequence) || away.GraceMs != 5000 {
			p.t.Errorf("%+v after %d frames", away, p.sequence)
		}
		time.Sleep(time.Second)
		p.answer(g, r, `{}`)
		p.drain()
	}, func(t *testing.T, c *Client) {
		call := do(t, c, echo(`{}`))
		start := time.Now()
		if err := c.Drain(context.Background(), 5*time.Second); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != time.Second {
			t.Fatal(took)
		}
		if _, err := call.Result(); err != nil {
			t.Fatal(err)
		}
		if c.State() != wire.ConnectionClosed || c.Lifecycle() != wire.LifecycleStopped {
			t.Fatal(c.State(), c.Lifecycle())
		}
		if _, err := c.Do(context.Background(), echo(`{}`)); err != ErrClosed {
			t.Fatal(err)
		}
	})
}

// After the grace what is in flight is cancelled; what does not stop is given up.
func TestDrainCancels(t *testing.T) {
	session(t, testOptions(), func(p *scripted) {
		g1, r1 := p.request()
		p.request()
		p.next(wire.TypeGoAway)
		for range 2 {
			g := p.next(wire.TypeCancel)
			c := decode[wire.CancelRequest](p.t, g)
			p.send(&wire.CancelAck{RequestID: c.RequestID}, g)
		}
		p.send(&wire.Cancelled{RequestID: r1.RequestID, OperationID: r1.OperationID}, g1)
		p.drain()
	}, func(t *testing.T, c *Client) {
		first, second := do(t, c, echo(`{}`)), do(t, c, echo(`{}`))
		start := time.Now()
		if err := c.Drain(context.Background(), time.Second); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != time.Second+DefaultGrace {
			t.Fatal(took)
		}
		var stopped *Cancelled
		if _, err := first.Result(); !errors.As(err, &stopped) {
			t.Fatal(err)
		}
		var up *GivenUp
		if _, err := second.Result(); !errors.As(err, &up) {
			t.Fatal(err)
		}
	})
}

// A plugin that never closes its end does not hold the host beyond ctx.
func TestDrainOfOneThatStays(t *testing.T) {
	session(t, testOptions(), func(p *scripted) {
		p.next(wire.TypeGoAway)
		time.Sleep(time.Minute)
	}, func(t *testing.T, c *Client) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		start := time.Now()
		_ = c.Drain(ctx, time.Second)
		if took := time.Since(start); took > 2*time.Second+flushWait {
			t.Fatal(took)
		}
		if c.State() != wire.ConnectionClosed {
			t.Fatal(c.State())
		}
	})
}

func TestHeartbeats(t *testing.T) {
	opts := testOptions()
	opts.Limits.HeartbeatIntervalMs = 1000
	session(t, opts, func(p *scripted) {
		p.send(&wire.Beat{Nonce: "are you there?"})
		if ack := decode[wire.BeatAck](p.t, p.next(wire.TypeHeartbeatAck)); ack.Nonce != "are you there?" {
			p.t.Errorf("%+v", ack)
		}
		for range 3 {
			g := p.next(wire.TypeHeartbeat)
			p.send(&wire.BeatAck{Nonce: decode[wire.Beat](p.t, g).Nonce}, g)
		}
		g := p.next(wire.TypeHeartbeat) // one may be missed
		second := p.next(wire.TypeHeartbeat)
		p.send(&wire.BeatAck{Nonce: decode[wire.Beat](p.t, second).Nonce}, second)
		_ = g
		p.next(wire.TypeHeartbeat)
		p.next(wire.TypeHeartbeat)
		p.drain()
	}, func(t *testing.T, c *Client) {
		start := time.Now()
		<-c.Done()
		faultOf(t, c.Err(), wire.CodeUnavailable, "")
		if took := time.Since(start); took != 8*time.Second {
			t.Fatal(took)
		}
	})
}

func TestHealthWatch(t *testing.T) {
	session(t, testOptions(), func(p *scripted) {
		report := func(s wire.HealthStatus) *wire.HealthReport {
			return &wire.HealthReport{Status: s, UpdatedAt: time.Now()}
		}
		g := p.next(wire.TypeHealthCheck)
		p.send(report(wire.Healthy), g)
		watch := p.next(wire.TypeHealthCheck)
		if !decode[wire.HealthCheck](p.t, watch).Watch {
			p.t.Error("no watch")
		}
		p.send(report(wire.Healthy), watch)
		time.Sleep(time.Second)
		p.send(report(wire.Degraded), watch)
		time.Sleep(time.Second)
		p.send(report(wire.Unhealthy))
		time.Sleep(time.Second)
		p.send(report(wire.Healthy))
		p.drain()
	}, func(t *testing.T, c *Client) {
		if h, err := c.Health(context.Background()); err != nil || h.Status != wire.Healthy {
			t.Fatal(h, err)
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		var seen []wire.HealthStatus
		var lives []wire.State
		err := c.WatchHealth(ctx, func(h wire.HealthReport) {
			seen, lives = append(seen, h.Status), append(lives, c.Lifecycle())
			if len(seen) == 4 {
				cancel(errStop)
			}
		})
		if err != errStop {
			t.Fatal(err)
		}
		want := []wire.State{wire.LifecycleReady, wire.LifecycleDegraded, wire.LifecycleDegraded, wire.LifecycleReady}
		for i := range want {
			if lives[i] != want[i] {
				t.Fatal(seen, lives)
			}
		}
	})
}

func TestReceiptQuery(t *testing.T) {
	receipt := testReceipt()
	session(t, testOptions(), func(p *scripted) {
		g := p.next(wire.TypeReceiptQuery)
		p.send(receipt, g)
		g = p.next(wire.TypeReceiptQuery)
		p.send(&wire.Error{Code: wire.CodeNotFound, Message: "no such receipt", BlameDomain: wire.BlameCaller, Severity: wire.SeverityError}, g)
		g = p.next(wire.TypeReceiptQuery)
		other := *receipt
		other.PluginID = "com.example.other"
		p.send(&other, g)
		p.drain()
	}, func(t *testing.T, c *Client) {
		byID := wire.ReceiptQuery{ReceiptID: wire.Some(receipt.ReceiptID)}
		got, err := c.Receipt(context.Background(), byID)
		if err != nil || got.OperationID != receipt.OperationID {
			t.Fatal(got, err)
		}
		_, err = c.Receipt(context.Background(), byID)
		var said *wire.Error
		if !errors.As(err, &said) || said.Code != wire.CodeNotFound {
			t.Fatal(err)
		}
		_, err = c.Receipt(context.Background(), byID)
		faultOf(t, err, wire.CodePluginMalformed, wire.CodeIdentityMismatch)
	})
}

func TestValidateSettings(t *testing.T) {
	session(t, testOptions(), func(p *scripted) {
		g := p.next(wire.TypeSettingsValidate)
		p.send(&wire.SettingsValidated{Problems: []wire.SettingsProblem{{Path: "/a", Message: "too small"}}}, g)
		p.drain()
	}, func(t *testing.T, c *Client) {
		v, err := c.ValidateSettings(context.Background(), []byte(`{"a":1}`))
		if err != nil || v.Valid || len(v.Problems) != 1 || v.Problems[0].Path != "/a" {
			t.Fatal(v, err)
		}
	})
}

func testReceipt() *wire.Receipt {
	at := time.Date(2026, 7, 11, 16, 20, 0, 0, time.UTC)
	return &wire.Receipt{ReceiptID: wire.NewUUID(), PluginID: identity.PluginID, PublisherID: identity.PublisherID,
		PackageVersion: identity.PackageVersion, ManifestDigest: reviewed, CapabilityID: "test.ops", OperationName: "echo", OperationVersion: "1.0",
		OperationID: wire.NewUUID(), Attempt: 1, ExecutionState: wire.ExecutionCompleted, EffectState: wire.EffectCommitted, StartedAt: at,
		IssuedAt: at, RequestDigest: reviewed, ResultDigest: reviewed, ExpiresAt: at.Add(time.Hour)}
}
