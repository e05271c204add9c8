package session

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// warm makes as many calls one after the other as it takes for the next one to be read by
// who waits for it.
func warm(t *testing.T, c *Client) {
	t.Helper()
	for range habit {
		if _, err := do(t, c, echo(`{}`)).Result(); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Wait() // the client's goroutine stands by, and no time has passed
	if !c.turn.standing {
		t.Fatal("the client's goroutine reads")
	}
}

func (t *turn) leads(call *Call) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.leader == call
}

// think is what the scripted plugin takes for an answer: until then the host waits.
const think = time.Microsecond

func (p *scripted) echo(n int) {
	for range n {
		g, r := p.request()
		time.Sleep(think)
		p.answer(g, r, `{}`)
	}
}

// Where one request follows the other, whoever waits for a result reads it; where there
// is a pause, the client's goroutine reads again.
func TestTurn(t *testing.T) {
	session(t, testOptions(), func(p *scripted) {
		p.echo(habit + 10)
		g := p.next(wire.TypeRequest)
		r := decode[wire.Request](p.t, g)
		time.Sleep(time.Second) // in the session's own time
		p.answer(g, r, `{}`)
		p.drain()
	}, func(t *testing.T, c *Client) {
		warm(t, c)
		for range 10 {
			if _, err := do(t, c, echo(`{}`)).Result(); err != nil {
				t.Fatal(err)
			}
		}
		if c.turn.led != 10 || !c.turn.standing {
			t.Errorf("%d of 10 results were read by who waited for them", c.turn.led)
		}
		time.Sleep(2 * pause)
		synctest.Wait()
		if c.turn.standing {
			t.Error("after a pause nobody reads")
		}
		call := do(t, c, echo(`{}`))
		if _, err := call.Result(); err != nil || c.turn.led != 10 {
			t.Error(err, c.turn.led)
		}
	})
}

// A result that somebody reads is given up in time, whatever the plugin does or leaves,
// and nothing of what it does later is lost.
func TestTurnReleased(t *testing.T) {
	half := func(p *scripted, g got, r wire.Request) (rest []byte) {
		body := &wire.Response{RequestID: r.RequestID, OperationID: r.OperationID, PayloadClass: wire.ClassInternal, Payload: []byte(`{}`)}
		framed, start := wire.BeginFrame(nil)
		framed = append(framed, p.frame(body, wire.Some(g.MessageID), nil)...)
		if err := wire.EndFrame(framed, start, wire.DefaultMaxFrame); err != nil {
			p.t.Error(err)
		}
		if _, err := p.conn.Write(framed[:len(framed)/2]); err != nil {
			p.t.Error(err)
		}
		return framed[len(framed)/2:]
	}
	for _, inside := range []bool{false, true} {
		t.Run(fmt.Sprintf("inside a frame %v", inside), func(t *testing.T) {
			session(t, testOptions(), func(p *scripted) {
				p.echo(habit)
				g, r := p.request()
				var rest []byte
				if inside {
					rest = half(p, g, r)
				}
				p.next(wire.TypeCancel)
				time.Sleep(2 * DefaultGrace)
				if inside {
					p.conn.Write(rest)
				} else {
					p.answer(g, r, `{}`)
				}
				p.echo(habit + 3)
				p.drain()
			}, func(t *testing.T, c *Client) {
				warm(t, c)
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				began := time.Now()
				call, err := c.Do(ctx, echo(`{}`))
				if err != nil {
					t.Fatal(err)
				}
				_, err = call.Result()
				var given *GivenUp
				if took := time.Since(began); !errors.As(err, &given) || took != time.Second+DefaultGrace {
					t.Fatal(err, took)
				}
				if c.turn.led != 1 {
					t.Error("nobody read for it")
				}
				time.Sleep(2 * DefaultGrace)
				warm(t, c)
				for range 3 {
					if _, err := do(t, c, echo(`{}`)).Result(); err != nil {
						t.Fatal(err)
					}
				}
				if c.turn.led != 4 || c.Counts().LateFrames != 1 {
					t.Error(c.turn.led, c.Counts())
				}
			})
		})
	}
}

// The end of a session ends the wait of who reads for a result.
func TestTurnEnds(t *testing.T) {
	for name, end := range map[string]struct {
		plugin func(*scripted)
		host   func(*Client)
		code   wire.Code
	}{
		"the plugin's":     {plugin: func(p *scripted) { p.conn.Close() }, code: wire.CodePluginCrashed},
		"a fault":          {plugin: func(p *scripted) { p.raw([]byte(`{}`)); p.drain() }, code: wire.CodePluginMalformed},
		"the host's":       {plugin: (*scripted).drain, host: func(c *Client) { c.Close() }},
		"the host's drain": {plugin: (*scripted).drain, host: func(c *Client) { c.Drain(context.Background(), time.Second) }},
		"a deadline":       {plugin: (*scripted).drain, host: func(*Client) {}},
	} {
		t.Run(name, func(t *testing.T) {
			session(t, testOptions(), func(p *scripted) {
				p.echo(habit)
				p.request()
				end.plugin(p)
			}, func(t *testing.T, c *Client) {
				warm(t, c)
				call := do(t, c, echo(`{}`))
				if end.host != nil {
					go end.host(c)
				}
				_, err := call.Result()
				if err == nil || c.turn.led != 1 {
					t.Error(err, c.turn.led)
				}
				if end.code != "" {
					var f *Fault
					if !errors.As(err, &f) || f.Code != end.code {
						t.Error(err)
					}
				}
			})
		})
	}
}

// Who reads for one result serves everybody else meanwhile, and hands the reading over.
func TestTurnServesOthers(t *testing.T) {
	session(t, testOptions(), func(p *scripted) {
		p.echo(habit)
		first, r1 := p.request()
		second, r2 := p.request()
		p.send(&wire.HealthReport{Status: wire.Healthy, UpdatedAt: time.Now()}, p.next(wire.TypeHealthCheck))
		counted, r3 := p.request()
		p.answer(second, r2, `{}`)
		p.item(r3, 0, `{"n":1}`)
		third, r4 := p.request()
		time.Sleep(time.Second)
		p.answer(first, r1, `{}`) // who reads has what it waited for
		p.item(r3, 1, `{"n":2}`)
		p.answer(third, r4, `{}`)
		p.send(errorFor(r3, wire.CodeInternal), counted)
		p.drain()
	}, func(t *testing.T, c *Client) {
		warm(t, c)
		began := time.Now()
		results := make(chan error)
		wait := func(call *Call) { _, err := call.Result(); results <- err }
		go wait(do(t, c, echo(`{}`)))
		synctest.Wait()
		if c.turn.leader == nil {
			t.Fatal("nobody reads for the result")
		}
		go wait(do(t, c, echo(`{}`)))
		if _, err := c.Health(t.Context()); err != nil {
			t.Fatal(err)
		}
		stream := do(t, c, Request{CapabilityID: "test.ops", OperationName: "count", Payload: []byte(`{}`)})
		if err := <-results; err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Next(); err != nil {
			t.Fatal(err)
		}
		go wait(do(t, c, echo(`{}`)))
		for range 2 {
			if err := <-results; err != nil {
				t.Fatal(err)
			}
		}
		if _, err := stream.Next(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != time.Second || c.turn.led != 1 {
			t.Errorf("%s, %d led", took, c.turn.led)
		}
	})
}

// What nobody waits for with Result, or not yet, is read at once although the client's
// goroutine stands by.
func TestTurnIsTaken(t *testing.T) {
	session(t, testOptions(), func(p *scripted) {
		p.echo(habit)
		p.send(&wire.HealthReport{Status: wire.Healthy, UpdatedAt: time.Now()}, p.next(wire.TypeHealthCheck))
		p.echo(habit)
		g, r := p.request()
		p.item(r, 0, `{}`)
		p.send(errorFor(r, wire.CodeInternal), g)
		p.echo(habit)
		first, r1 := p.request()
		second, r2 := p.request()
		time.Sleep(think)
		p.answer(first, r1, `{}`)
		p.answer(second, r2, `{}`)
		p.drain()
	}, func(t *testing.T, c *Client) {
		warm(t, c)
		began := time.Now()
		if _, err := c.Health(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("a question took %s", took)
		}
		warm(t, c)
		began = time.Now()
		if _, err := do(t, c, Request{CapabilityID: "test.ops", OperationName: "count", Payload: []byte(`{}`)}).Next(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("an item took %s", took)
		}
		warm(t, c)
		began = time.Now()
		first, second := do(t, c, echo(`{}`)), do(t, c, echo(`{}`))
		later := make(chan error)
		go func() {
			for !c.turn.leads(first) {
				runtime.Gosched()
			}
			_, err := second.Result()
			later <- err
		}()
		if _, err := first.Result(); err != nil {
			t.Fatal(err)
		}
		if err := <-later; err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != think || c.turn.led != 1 {
			t.Errorf("two results took %s, %d led", took, c.turn.led)
		}
	})
}

// A request whose end is not waited for with Result does not wait for a pause each time.
func TestTurnOfDone(t *testing.T) {
	session(t, testOptions(), func(p *scripted) {
		p.echo(habit + 20)
		p.drain()
	}, func(t *testing.T, c *Client) {
		warm(t, c)
		began := time.Now()
		for range 20 {
			<-do(t, c, echo(`{}`)).Done()
		}
		if took := time.Since(began); took != 20*think || c.turn.led != 0 {
			t.Errorf("%s, %d led", took, c.turn.led)
		}
	})
}
