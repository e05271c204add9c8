package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

var errStop = errors.New("enough")

// Every order in which the frames of a cancellation can come: the first terminal frame is
// the outcome, what comes after it is borne and counted, and the session goes on.
func TestCancelRaces(t *testing.T) {
	type step string
	const (
		ack       step = "cancelAck"
		response  step = "response"
		failure   step = "error"
		cancelled step = "cancelled"
		progress  step = "progress"
	)
	terminals := []step{response, failure, cancelled}
	var orders [][]step
	for _, first := range terminals {
		orders = append(orders, []step{ack, first}, []step{first, ack}, []step{progress, ack, progress, first}, []step{ack, first, progress})
		for _, second := range terminals {
			orders = append(orders, []step{ack, first, second}, []step{first, ack, second}, []step{first, second, ack})
			for _, third := range terminals {
				orders = append(orders, []step{ack, first, second, third})
			}
		}
	}
	for _, order := range orders {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			session(t, testOptions(), func(p *scripted) {
				g, r := p.request()
				c := p.next(wire.TypeCancel)
				if body := decode[wire.CancelRequest](p.t, c); body.RequestID != r.RequestID || body.Reason == "" {
					p.t.Errorf("%+v", body)
				}
				for _, s := range order {
					switch s {
					case ack:
						p.send(&wire.CancelAck{RequestID: r.RequestID}, c)
					case response:
						p.answer(g, r, `{}`)
					case failure:
						p.send(errorFor(r, wire.CodeInternal), g)
					case cancelled:
						p.send(&wire.Cancelled{RequestID: r.RequestID, OperationID: r.OperationID}, g)
					case progress:
						p.send(&wire.ProgressUpdate{RequestID: r.RequestID, OperationID: r.OperationID, Message: "still"})
					}
				}
				g, r = p.request()
				p.answer(g, r, `{}`)
				p.drain()
			}, func(t *testing.T, c *Client) {
				call := do(t, c, echo(`{}`))
				call.Cancel(errStop)
				call.Cancel(errors.New("a second time"))
				result, err := call.Result()
				first, late := step(""), 0
				for _, s := range order {
					switch {
					case first != "" && s != ack:
						late++
					case s == response || s == failure || s == cancelled:
						first = s
					}
				}
				var said *wire.Error
				var stopped *Cancelled
				switch first {
				case response:
					if err != nil || result == nil {
						t.Fatal(result, err)
					}
				case failure:
					if !errors.As(err, &said) {
						t.Fatal(err)
					}
				case cancelled:
					if !errors.As(err, &stopped) || stopped.Cause != errStop {
						t.Fatal(err)
					}
				}
				if _, err := do(t, c, echo(`{}`)).Result(); err != nil {
					t.Fatal(err)
				}
				if n := c.Counts().LateFrames; n != late {
					t.Fatalf("%d late frames, want %d", n, late)
				}
			})
		})
	}
}

// Cancels and answers at the same time, many times, on the machine's own clock.
func TestCancelRacesAnswer(t *testing.T) {
	n := 10_000
	if raceDetector || testing.Short() {
		n = 1000
	}
	conn, far := connection()
	over := make(chan struct{})
	go func() {
		defer close(over)
		p := newScripted(t, far)
		p.greet()
		for {
			g, err := p.read()
			if err != nil {
				return
			}
			switch g.Type {
			case wire.TypeRequest:
				r := decode[wire.Request](t, g)
				go p.answer(g, r, `{}`)
			case wire.TypeCancel:
				c := decode[wire.CancelRequest](t, g)
				go p.send(&wire.CancelAck{RequestID: c.RequestID}, g)
			}
		}
	}()
	c, err := Open(context.Background(), conn, testOptions())
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		call := do(t, c, echo(`{}`))
		go call.Cancel(errStop)
		if _, err := call.Result(); err != nil {
			t.Fatal(err)
		}
	}
	c.Close()
	<-over
}

// A plugin that does not stop is given up after the grace, and its end is borne.
func TestGivenUp(t *testing.T) {
	opts := testOptions()
	opts.Grace = 2 * time.Second
	session(t, opts, func(p *scripted) {
		g, r := p.request()
		p.next(wire.TypeCancel)
		time.Sleep(5 * time.Second)
		p.send(&wire.CancelAck{RequestID: r.RequestID})
		p.answer(g, r, `{}`)
		g, r = p.request()
		p.answer(g, r, `{}`)
		p.drain()
	}, func(t *testing.T, c *Client) {
		ctx, cancel := context.WithCancelCause(context.Background())
		call, err := c.Do(ctx, echo(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		cancel(errStop)
		_, err = call.Result()
		var up *GivenUp
		if !errors.As(err, &up) || !errors.Is(err, errStop) || time.Since(start) != opts.Grace {
			t.Fatal(err, time.Since(start))
		}
		if _, err := do(t, c, echo(`{}`)).Result(); err != nil {
			t.Fatal(err)
		}
		if n := c.Counts().LateFrames; n != 1 {
			t.Fatal(n)
		}
	})
}

// Without cancel.v1 nobody can be asked: the request is given up at once.
func TestCancelWithoutTheFeature(t *testing.T) {
	opts := testOptions()
	opts.Peer.Features = []wire.Feature{wire.FlowCredit}
	synctestOpen(t, opts, func(p *scripted) {
		ack := p.ack()
		ack.EnabledFeatures = opts.Peer.Features
		p.send(ack, p.next(wire.TypeHello))
		p.send(&wire.InitAck{Status: wire.InitReady, Capabilities: testPeer().Capabilities}, p.next(wire.TypeInit))
		p.request()
		if _, err := p.read(); err == nil {
			p.t.Error("something came after the request")
		}
	}, func(t *testing.T, c *Client, err error) {
		if err != nil {
			t.Fatal(err)
		}
		call := do(t, c, echo(`{}`))
		call.Cancel(errStop)
		var up *GivenUp
		if _, err := call.Result(); !errors.As(err, &up) {
			t.Fatal(err)
		}
	})
}

// A deadline is measured on the monotonic clock: a wall clock that is put forward or back
// in the middle changes nothing but what is written on the wire.
func TestDeadlineSurvivesClockSteps(t *testing.T) {
	for _, jump := range []time.Duration{0, time.Hour, -time.Hour, 100 * 365 * 24 * time.Hour} {
		t.Run(jump.String(), func(t *testing.T) {
			opts := testOptions()
			var offset atomic.Int64 // a time.Duration
			var deadline time.Time
			opts.Now = func() time.Time { return time.Now().Add(time.Duration(offset.Load())).Round(0) }
			session(t, opts, func(p *scripted) {
				g, r := p.request()
				deadline = r.Deadline
				c := p.next(wire.TypeCancel)
				if body := decode[wire.CancelRequest](p.t, c); body.Reason != "deadline_exceeded" {
					p.t.Errorf("%+v", body)
				}
				p.send(&wire.CancelAck{RequestID: r.RequestID}, c)
				p.send(errorFor(r, wire.CodeDeadlineExceeded), g)
				p.drain()
			}, func(t *testing.T, c *Client) {
				start, want := time.Now(), time.Now().Add(5*time.Second).UTC()
				r := echo(`{}`)
				r.Timeout = 5 * time.Second
				call := do(t, c, r)
				time.Sleep(time.Second)
				offset.Store(int64(jump))
				_, err := call.Result()
				var said *wire.Error
				if !errors.As(err, &said) || said.Code != wire.CodeDeadlineExceeded {
					t.Fatal(err)
				}
				if took := time.Since(start); took != 5*time.Second {
					t.Fatalf("ended after %v", took)
				}
				if !deadline.Equal(want.Truncate(time.Microsecond)) {
					t.Fatalf("deadlineUtc %v, want %v", deadline, want)
				}
			})
		})
	}
}

// Giving up in the middle of a stream: the consumer is released, the late items borne.
func TestCancelStream(t *testing.T) {
	session(t, testOptions(), func(p *scripted) {
		g, r := p.request()
		for i := range int64(10) {
			p.item(r, i, `{}`)
		}
		c := p.next(wire.TypeCancel)
		for i := range int64(10) {
			p.item(r, 10+i, `{}`)
		}
		p.send(&wire.CancelAck{RequestID: r.RequestID}, c)
		p.send(&wire.Cancelled{RequestID: r.RequestID, OperationID: r.OperationID}, g) // streamEnd is optional
		p.drain()
	}, func(t *testing.T, c *Client) {
		r := named("count")
		r.Payload = json.RawMessage(`{}`)
		call := do(t, c, r)
		n := 0
		for {
			_, err := call.Next()
			if err == nil {
				if n++; n == 5 {
					call.Cancel(errStop)
				}
				continue
			}
			var stopped *Cancelled
			if !errors.As(err, &stopped) || n != 20 {
				t.Fatal(n, err)
			}
			return
		}
	})
}
