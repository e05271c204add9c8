package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// What a plugin may do wrong after a good beginning. Each ends the session with its rule
// and every request in flight with it; the plugin is told the rule.
func TestHostileFrames(t *testing.T) {
	unknown := wire.NewUUID()
	reply := func(p *scripted, g got, body wire.Body, change func(*wire.Envelope)) {
		p.raw(p.frame(body, wire.Some(g.MessageID), change))
	}
	response := func(r wire.Request) *wire.Response {
		return &wire.Response{RequestID: r.RequestID, OperationID: r.OperationID, PayloadClass: wire.ClassInternal, Payload: json.RawMessage(`{}`)}
	}
	for name, test := range map[string]struct {
		rule wire.Code
		do   func(p *scripted, g got, r wire.Request)
	}{
		"zero length":     {wire.CodeFrameInvalid, func(p *scripted, _ got, _ wire.Request) { p.conn.Write([]byte{0, 0, 0, 0}) }},
		"negative length": {wire.CodeFrameInvalid, func(p *scripted, _ got, _ wire.Request) { p.conn.Write([]byte{0x80, 0, 0, 1}) }},
		"huge length":     {wire.CodeFrameTooLarge, func(p *scripted, _ got, _ wire.Request) { p.conn.Write([]byte{0x7f, 0xff, 0xff, 0xff}) }},
		"truncated": {wire.CodeFrameInvalid, func(p *scripted, _ got, _ wire.Request) {
			p.conn.Write([]byte{0, 0, 1, 0, '{'})
			p.conn.CloseWrite()
		}},
		"a banner":         {wire.CodeFrameTooLarge, func(p *scripted, _ got, _ wire.Request) { p.conn.Write([]byte("Hello, I am a plugin\n")) }},
		"no JSON":          {wire.CodeJSONSyntax, func(p *scripted, _ got, _ wire.Request) { p.raw([]byte("{hello}")) }},
		"a duplicate name": {wire.CodeJSONDuplicateName, func(p *scripted, _ got, _ wire.Request) { p.raw([]byte(`{"a":1,"a":2}`)) }},
		"no UTF-8":         {wire.CodeJSONUnicode, func(p *scripted, _ got, _ wire.Request) { p.raw([]byte("{\"a\":\"\xff\"}")) }},
		"a large number":   {wire.CodeJSONNumber, func(p *scripted, _ got, _ wire.Request) { p.raw([]byte(`{"a":9007199254740993}`)) }},
		"too deep": {wire.CodeJSONLimit, func(p *scripted, _ got, _ wire.Request) {
			p.raw(append(bytes.Repeat([]byte("["), 65), bytes.Repeat([]byte("]"), 65)...))
		}},
		"an unknown type": {wire.CodeEnvelopeInvalid, func(p *scripted, g got, r wire.Request) {
			p.raw(bytes.ReplaceAll(p.frame(response(r), wire.Some(g.MessageID), nil), []byte("response"), []byte("reprise!")))
		}},
		"a sequence again": {wire.CodeSequenceViolation, func(p *scripted, g got, r wire.Request) {
			reply(p, g, response(r), func(e *wire.Envelope) { e.Sequence = 2 })
		}},
		"a messageId again": {wire.CodeEnvelopeInvalid, func(p *scripted, _ got, r wire.Request) {
			id := wire.NewUUID()
			for range 2 {
				p.raw(p.frame(&wire.ProgressUpdate{RequestID: r.RequestID, OperationID: r.OperationID}, wire.NullUUID{}, func(e *wire.Envelope) { e.MessageID = id }))
			}
		}},
		"another version": {wire.CodeEnvelopeInvalid, func(p *scripted, g got, r wire.Request) {
			reply(p, g, response(r), func(e *wire.Envelope) { e.Version.Minor = 1 })
		}},
		"no cause": {wire.CodeEnvelopeInvalid, func(p *scripted, _ got, r wire.Request) { p.send(response(r)) }},
		"another cause": {wire.CodeEnvelopeInvalid, func(p *scripted, _ got, r wire.Request) {
			p.send(response(r), got{Envelope: wire.Envelope{MessageID: unknown}})
		}},
		"another operationId":     {wire.CodeStateViolation, func(p *scripted, g got, r wire.Request) { r.OperationID = unknown; p.send(response(r), g) }},
		"a request never issued":  {wire.CodeStateViolation, func(p *scripted, g got, r wire.Request) { r.RequestID = unknown; p.send(response(r), g) }},
		"a request from a plugin": {wire.CodeStateViolation, func(p *scripted, g got, r wire.Request) { p.send(&r) }},
		"cancelled unasked": {wire.CodeStateViolation, func(p *scripted, g got, r wire.Request) {
			p.send(&wire.Cancelled{RequestID: r.RequestID, OperationID: r.OperationID}, g)
		}},
		"cancelAck unasked":    {wire.CodeStateViolation, func(p *scripted, g got, r wire.Request) { p.send(&wire.CancelAck{RequestID: r.RequestID}, g) }},
		"heartbeatAck unasked": {wire.CodeStateViolation, func(p *scripted, g got, _ wire.Request) { p.send(&wire.BeatAck{Nonce: "1"}, g) }},
		"health unasked": {wire.CodeStateViolation, func(p *scripted, g got, _ wire.Request) {
			p.send(&wire.HealthReport{Status: wire.Healthy, UpdatedAt: time.Now()})
		}},
		"a receipt unasked": {wire.CodeStateViolation, func(p *scripted, g got, _ wire.Request) { p.send(testReceipt(), g) }},
		"helloAck again":    {wire.CodeStateViolation, func(p *scripted, g got, _ wire.Request) { p.send(p.ack(), g) }},
		"goAway twice": {wire.CodeStateViolation, func(p *scripted, g got, _ wire.Request) {
			p.send(&wire.GoAway{LastAcceptedSequence: int64(g.Sequence)})
			p.send(&wire.GoAway{LastAcceptedSequence: int64(g.Sequence)})
		}},
		"a receipt of another plugin": {wire.CodeIdentityMismatch, func(p *scripted, g got, r wire.Request) {
			w := response(r)
			w.Receipt = testReceipt()
			w.Receipt.PluginID = "com.example.other"
			p.send(w, g)
		}},
		"heartbeats without end": {wire.CodeResourceExhausted, func(p *scripted, _ got, _ wire.Request) {
			go func() { // whoever floods may still read
				for i := range 10 * maxBeats {
					p.send(&wire.Beat{Nonce: fmt.Sprint(i)})
				}
			}()
		}},
		"errors without end": {wire.CodeResourceExhausted, func(p *scripted, _ got, _ wire.Request) {
			go func() {
				for range 2 * maxNotices {
					p.send(&wire.Error{Code: wire.CodeInternal, BlameDomain: wire.BlamePlugin, Severity: wire.SeverityWarning})
				}
			}()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			session(t, testOptions(), func(p *scripted) {
				g, r := p.request()
				test.do(p, g, r)
				for {
					g, err := p.read()
					if err != nil {
						p.t.Error("the host hung up without a word")
						return
					}
					if g.Type != wire.TypeError {
						continue
					}
					if told := decode[wire.Error](p.t, g); told.Code != test.rule || told.Severity != wire.SeverityFatal || told.BlameDomain != test.rule.Blame(wire.BlamePlugin) {
						p.t.Errorf("told %+v", told)
					}
					p.drain()
					return
				}
			}, func(t *testing.T, c *Client) {
				_, err := do(t, c, echo(`{}`)).Result()
				faultOf(t, err, wire.CodePluginMalformed, test.rule)
				faultOf(t, c.Err(), wire.CodePluginMalformed, test.rule)
				<-c.Done()
				if _, err := c.Do(t.Context(), echo(`{}`)); err != c.Err() {
					t.Fatal(err)
				}
			})
		})
	}
}

// What a plugin may do wrong within one stream.
func TestHostileStreams(t *testing.T) {
	for name, test := range map[string]struct {
		rule  wire.Code
		fatal bool
		do    func(p *scripted, g got, r wire.Request)
	}{
		"an index left out": {wire.CodeInvalidArgument, false, func(p *scripted, _ got, r wire.Request) { p.item(r, 1, `{}`) }},
		"an index again":    {wire.CodeInvalidArgument, false, func(p *scripted, _ got, r wire.Request) { p.item(r, 0, `{}`); p.item(r, 0, `{}`) }},
		"a wrong count": {wire.CodeInvalidArgument, false, func(p *scripted, _ got, r wire.Request) {
			p.send(&wire.StreamEnd{RequestID: r.RequestID, OperationID: r.OperationID, ItemCount: 1})
		}},
		"an item after the end": {wire.CodeInvalidArgument, false, func(p *scripted, _ got, r wire.Request) {
			p.send(&wire.StreamEnd{RequestID: r.RequestID, OperationID: r.OperationID})
			p.item(r, 0, `{}`)
		}},
		"a response before the end": {wire.CodeInvalidArgument, false, func(p *scripted, g got, r wire.Request) { p.answer(g, r, `null`) }},
		"a payload after a stream": {wire.CodeSchemaMismatch, false, func(p *scripted, g got, r wire.Request) {
			p.send(&wire.StreamEnd{RequestID: r.RequestID, OperationID: r.OperationID})
			p.answer(g, r, `{}`)
		}},
		"an item that its schema refuses": {wire.CodeSchemaMismatch, false, func(p *scripted, _ got, r wire.Request) { p.item(r, 0, `{"wrong":1}`) }},
		"another class": {wire.CodeInvalidArgument, false, func(p *scripted, g got, r wire.Request) {
			p.send(&wire.StreamEnd{RequestID: r.RequestID, OperationID: r.OperationID})
			p.send(&wire.Response{RequestID: r.RequestID, OperationID: r.OperationID, PayloadClass: wire.ClassPublic, Payload: json.RawMessage("null")}, g)
		}},
		"credit for no stream": {wire.CodeInvalidArgument, false, func(p *scripted, _ got, r wire.Request) { p.send(&wire.Flow{RequestID: r.RequestID, CreditItems: 1}) }},
		"an item with another member": {wire.CodeSchemaUnknownMember, false, func(p *scripted, _ got, r wire.Request) {
			p.raw(bytes.Replace(p.frame(&wire.StreamItem{RequestID: r.RequestID, OperationID: r.OperationID, Payload: json.RawMessage(`{}`)}, wire.NullUUID{}, nil),
				[]byte(`"index":0`), []byte(`"index":0,"color":"red"`), 1))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			session(t, testOptions(), func(p *scripted) {
				g, r := p.request()
				test.do(p, g, r)
				p.drain()
			}, func(t *testing.T, c *Client) {
				r := named("count")
				r.Payload = json.RawMessage(`{}`)
				call := do(t, c, r)
				var err error
				for err == nil {
					_, err = call.Next()
				}
				_, err = call.Result()
				faultOf(t, err, wire.CodePluginMalformed, test.rule)
				if dead := c.Err() != nil; dead != test.fatal {
					t.Fatalf("session: %v", c.Err())
				}
			})
		})
	}
}

// Items of a request that answers with none; and bodies that cannot be read and belong to
// no request: the plugin is told, and the session goes on.
func TestHostileBodies(t *testing.T) {
	session(t, testOptions(), func(p *scripted) {
		_, r := p.request()
		p.item(r, 0, `{}`)
		if told := decode[wire.Error](p.t, p.next(wire.TypeError)); told.Code != wire.CodeInvalidArgument || told.RequestID != wire.Some(r.RequestID) {
			p.t.Errorf("told %+v", told)
		}
		p.raw(bytes.Replace(p.frame(&wire.Beat{Nonce: "1"}, wire.NullUUID{}, nil), []byte(`"nonce":"1"`), []byte(`"nonce":1`), 1))
		if told := decode[wire.Error](p.t, p.next(wire.TypeError)); told.Code != wire.CodeSchemaMismatch || told.Severity != wire.SeverityError || told.RequestID.Set {
			p.t.Errorf("told %+v", told)
		}
		g := p.next(wire.TypeHealthCheck)
		p.raw(bytes.Replace(p.frame(&wire.HealthReport{Status: wire.Healthy, UpdatedAt: time.Now()}, wire.Some(g.MessageID), nil), []byte(`"healthy"`), []byte(`"fine"`), 1))
		g, r = p.request()
		p.answer(g, r, `{}`)
		p.drain()
	}, func(t *testing.T, c *Client) {
		_, err := do(t, c, echo(`{}`)).Result()
		faultOf(t, err, wire.CodePluginMalformed, wire.CodeInvalidArgument)
		time.Sleep(time.Second) // the plugin is told of its heartbeat first
		_, err = c.Health(t.Context())
		faultOf(t, err, wire.CodePluginMalformed, wire.CodeSchemaMismatch)
		if _, err := do(t, c, echo(`{}`)).Result(); err != nil {
			t.Fatal(err)
		}
	})
}

// Frames of ended requests are borne up to a bound.
func TestLateFramesWithoutEnd(t *testing.T) {
	session(t, testOptions(), func(p *scripted) {
		g, r := p.request()
		p.answer(g, r, `{}`)
		go p.drain()
		for range 2 * lateAllowance {
			p.answer(g, r, `{}`)
		}
	}, func(t *testing.T, c *Client) {
		if _, err := do(t, c, echo(`{}`)).Result(); err != nil {
			t.Fatal(err)
		}
		<-c.Done()
		faultOf(t, c.Err(), wire.CodePluginMalformed, wire.CodeResourceExhausted)
	})
}

// A plugin that claims a large frame and never sends it, one that sends progress without
// end, and one that is owed a large stream that nobody reads: memory stays flat.
func TestMemoryOfHostilePlugin(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	session(t, testOptions(), func(p *scripted) {
		_, r := p.request()
		_, stream := p.request()
		for i := range int64(20_000) {
			p.send(&wire.ProgressUpdate{RequestID: r.RequestID, OperationID: r.OperationID, Message: string(bytes.Repeat([]byte("x"), 1000))})
			if i < 4 {
				p.item(stream, i, `"`+string(bytes.Repeat([]byte("y"), 1<<20-2))+`"`)
			}
		}
		p.conn.Write([]byte{0, 0x7f, 0xff, 0xff})
		time.Sleep(time.Second)
	}, func(t *testing.T, c *Client) {
		r := echo(`{}`)
		r.Progress = func(wire.ProgressUpdate) { time.Sleep(time.Hour) }
		call := do(t, c, r)
		count := named("count")
		count.Payload, count.Window = json.RawMessage(`{}`), Window{Items: 4, Bytes: 5 << 20}
		do(t, c, count)
		<-c.Done()
		if now := heap(); now > before+24<<20 {
			t.Errorf("%d MiB more than before", (now-before)>>20)
		}
		_, err := call.Result()
		faultOf(t, err, wire.CodePluginMalformed, wire.CodeFrameInvalid)
	})
}

// A plugin that greets people on stdout is told from one that sends broken frames.
func TestBanner(t *testing.T) {
	synctestOpen(t, testOptions(), func(p *scripted) {
		p.conn.Write([]byte("Hello, I am a plugin\n"))
		p.drain()
	}, func(t *testing.T, c *Client, err error) {
		f := faultOf(t, err, wire.CodePluginMalformed, wire.CodeFrameTooLarge)
		if !strings.Contains(f.Text, "the plugin wrote text where frames belong") {
			t.Fatal(f)
		}
	})
}
