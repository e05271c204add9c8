package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

func TestUnary(t *testing.T) {
	session(t, testOptions(), func(p *scripted) {
		for range 3 {
			g, r := p.request()
			p.answer(g, r, string(r.Payload))
		}
		p.drain()
	}, func(t *testing.T, c *Client) {
		for i := range 3 {
			payload := fmt.Sprintf(`{"n":%d}`, i)
			result, err := do(t, c, echo(payload)).Result()
			if err != nil || string(result.Payload) != payload {
				t.Fatalf("%v %v", result, err)
			}
		}
		if s := c.Lifecycle(); s != wire.LifecycleReady {
			t.Fatal(s)
		}
	})
}

// Requests that are answered in another order than they were sent in.
func TestConcurrentRequests(t *testing.T) {
	const n = 20
	answer := make(chan struct{})
	session(t, testOptions(), func(p *scripted) {
		type one struct {
			g got
			r wire.Request
		}
		var all []one
		for range n {
			g, r := p.request()
			all = append(all, one{g, r})
		}
		<-answer
		for i := range all {
			o := all[n-1-i]
			p.answer(o.g, o.r, string(o.r.Payload))
		}
		p.drain()
	}, func(t *testing.T, c *Client) {
		var calls []*Call
		for i := range n {
			calls = append(calls, do(t, c, echo(fmt.Sprintf(`{"n":%d}`, i))))
		}
		if s := c.Lifecycle(); s != wire.LifecycleBusy {
			t.Fatal(s)
		}
		close(answer)
		for i, call := range calls {
			result, err := call.Result()
			if err != nil || string(result.Payload) != fmt.Sprintf(`{"n":%d}`, i) {
				t.Fatalf("%d: %v %v", i, result, err)
			}
		}
	})
}

// No more requests are in flight than the limits say.
func TestMaxInFlight(t *testing.T) {
	opts := testOptions()
	opts.Limits.MaxInFlight = 2
	session(t, opts, func(p *scripted) {
		g1, r1 := p.request()
		p.request()
		p.answer(g1, r1, `{}`)
		p.request()
		p.drain()
	}, func(t *testing.T, c *Client) {
		first, second := do(t, c, echo(`{}`)), do(t, c, echo(`{}`))
		third := do(t, c, echo(`{}`)) // waits for the first
		if _, err := first.Result(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := c.Do(ctx, echo(`{}`)); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		c.Close()
		for _, call := range []*Call{second, third} {
			if _, err := call.Result(); err != ErrClosed {
				t.Fatal(err)
			}
		}
	})
}

func TestBadRequests(t *testing.T) {
	opts := testOptions()
	opts.Peer.Features = []wire.Feature{wire.FlowCredit, wire.Cancel}
	synctestOpen(t, opts, func(p *scripted) {
		ack := p.ack()
		ack.EnabledFeatures = opts.Peer.Features
		ack.MaxFrameBytes = 2048
		p.send(ack, p.next(wire.TypeHello))
		p.send(&wire.InitAck{Status: wire.InitReady, Capabilities: testPeer().Capabilities}, p.next(wire.TypeInit))
		g, r := p.request() // the only one
		p.answer(g, r, `{}`)
		p.drain()
	}, func(t *testing.T, c *Client, err error) {
		if err != nil {
			t.Fatal(err)
		}
		large, _ := json.Marshal(map[string]string{"v": string(make([]byte, 400)) + "x"})
		for _, test := range []struct {
			r    Request
			code wire.Code
		}{
			{named("none"), wire.CodeUnknownOperation},
			{echo(`{"a":1,"a":2}`), wire.CodeInvalidArgument},
			{echo(``), wire.CodeInvalidArgument},
			{echo(`{"wrong":1}`), wire.CodeSchemaMismatch},
			{Request{CapabilityID: "test.ops", OperationName: "sum", Payload: json.RawMessage(`{}`)}, wire.CodeInvalidArgument},
			{Request{CapabilityID: "test.ops", OperationName: "echo", Payload: json.RawMessage(`{}`), Class: wire.ClassSecret}, wire.CodePayloadClassDenied},
			{Request{CapabilityID: "test.ops", OperationName: "echo", Payload: json.RawMessage(`{}`), Secrets: []wire.Secret{{Pointer: "/a", Value: "b"}}}, wire.CodeMissingRequiredFeature},
			{echo(string(large)), wire.CodeResourceExhausted},
		} {
			_, err := c.Do(context.Background(), test.r)
			var bad *BadRequest
			if !errors.As(err, &bad) || bad.Code != test.code {
				t.Errorf("%+v: got %v, want %s", test.r, err, test.code)
			}
		}
		for name, err := range map[string]error{
			"receipt":  second(c.Receipt(context.Background(), wire.ReceiptQuery{ReceiptID: wire.Some(wire.NewUUID())})),
			"settings": second(c.ValidateSettings(context.Background(), json.RawMessage(`{}`))),
			"watch":    c.WatchHealth(context.Background(), nil),
		} {
			if err != ErrFeature {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := do(t, c, echo(`{}`)).Result(); err != nil { // and the session is none the worse
			t.Fatal(err)
		}
	})
}

func second[T any](_ T, err error) error { return err }

// An error answer ends its request and nothing else.
func TestErrorAnswer(t *testing.T) {
	session(t, testOptions(), func(p *scripted) {
		g, r := p.request()
		p.send(errorFor(r, wire.CodeUnavailable), g)
		g, r = p.request()
		p.answer(g, r, `{}`)
		p.drain()
	}, func(t *testing.T, c *Client) {
		_, err := do(t, c, echo(`{}`)).Result()
		var e *wire.Error
		if !errors.As(err, &e) || e.Code != wire.CodeUnavailable {
			t.Fatal(err)
		}
		if _, err := do(t, c, echo(`{}`)).Result(); err != nil {
			t.Fatal(err)
		}
	})
}

// A payload that its schema refuses is the plugin's fault, in that request alone.
func TestResponseAgainstSchema(t *testing.T) {
	session(t, testOptions(), func(p *scripted) {
		g, r := p.request()
		p.answer(g, r, `{"wrong":1}`)
		g, r = p.request()
		p.answer(g, r, `{}`)
		p.drain()
	}, func(t *testing.T, c *Client) {
		_, err := do(t, c, echo(`{}`)).Result()
		if f := faultOf(t, err, wire.CodePluginMalformed, wire.CodeSchemaMismatch); f.Path != "/payload/wrong" {
			t.Fatal(f.Path)
		}
		if _, err := do(t, c, echo(`{}`)).Result(); err != nil {
			t.Fatal(err)
		}
	})
}

// Progress reaches the caller in order, the newest wins, and none comes after the result.
func TestProgress(t *testing.T) {
	session(t, testOptions(), func(p *scripted) {
		g, r := p.request()
		for i := range int64(1000) {
			p.send(&wire.ProgressUpdate{RequestID: r.RequestID, OperationID: r.OperationID, Message: "on it", Current: &i})
		}
		p.answer(g, r, `{}`)
		p.drain()
	}, func(t *testing.T, c *Client) {
		var seen []int64
		r := echo(`{}`)
		r.Progress = func(u wire.ProgressUpdate) {
			seen = append(seen, *u.Current)
			time.Sleep(time.Second) // slow: what comes meanwhile replaces what came before
		}
		if _, err := do(t, c, r).Result(); err != nil {
			t.Fatal(err)
		}
		for i := 1; i < len(seen); i++ {
			if seen[i] <= seen[i-1] {
				t.Fatal(seen)
			}
		}
		if len(seen) < 2 || len(seen) > 3 || seen[len(seen)-1] != 999 {
			t.Fatal(seen)
		}
	})
}

// The response stream: a consumer that takes nothing makes the plugin wait.
func TestResponseStreamCredit(t *testing.T) {
	const window = 8
	sentItems := make(chan int64, 1)
	session(t, testOptions(), func(p *scripted) {
		g, r := p.request()
		if r.Stream == nil || !r.Stream.Response || r.Stream.CreditItems != wire.CountOf(window) || r.Stream.CreditBytes != wire.CountOf(1<<20) {
			p.t.Errorf("stream %+v", r.Stream)
		}
		var credit wire.Credit
		credit.Grant(r.Stream.CreditItems.N, r.Stream.CreditBytes.N)
		var bytes int64
		var index int64
		for ; index < 100; index++ {
			for !credit.Covers(200) {
				select {
				case sentItems <- index:
				default:
				}
				f := decode[wire.Flow](p.t, p.next(wire.TypeFlow))
				credit.Grant(f.CreditItems, f.CreditBytes)
			}
			_ = credit
			n := int64(p.item(r, index, fmt.Sprintf(`{"n":%d}`, index)))
			credit.Receive(n)
			bytes += n
		}
		go p.drain()
		p.send(&wire.StreamEnd{RequestID: r.RequestID, OperationID: r.OperationID, ItemCount: index, ByteCount: bytes})
		p.answer(g, r, `null`)
	}, func(t *testing.T, c *Client) {
		r := named("count")
		r.Payload, r.Window = json.RawMessage(`{}`), Window{Items: window, Bytes: 1 << 20}
		call := do(t, c, r)
		if n := <-sentItems; n != window { // nothing was taken: exactly the window has come
			t.Fatal(n)
		}
		for i := range 100 {
			item, err := call.Next()
			if err != nil || string(item) != fmt.Sprintf(`{"n":%d}`, i) {
				t.Fatalf("%d: %s %v", i, item, err)
			}
		}
		if _, err := call.Next(); err != io.EOF {
			t.Fatal(err)
		}
		result, err := call.Result()
		if err != nil || result.Items != 100 || string(result.Payload) != "null" {
			t.Fatalf("%+v %v", result, err)
		}
	})
}

// One item beyond the credit is borne; the next ends the request (S-63), of which the
// plugin is told by an error that is the request's terminal frame (S-27, S-49).
func TestFlowControlViolation(t *testing.T) {
	session(t, testOptions(), func(p *scripted) {
		asked, r := p.request()
		for i := range int64(4) { // two more than the window
			p.item(r, i, `{}`)
		}
		g := p.next(wire.TypeError)
		told := decode[wire.Error](p.t, g)
		if told.RequestID != wire.Some(r.RequestID) || told.OperationID != wire.Some(r.OperationID) || told.Code != wire.CodeFlowControlViolation ||
			told.BlameDomain != wire.BlamePlugin || told.Severity != wire.SeverityError || g.CausationID != wire.Some(asked.MessageID) {
			p.t.Errorf("%+v, caused by %v", told, g.CausationID)
		}
		p.item(r, 4, `{}`) // late
		g, r = p.request()
		p.answer(g, r, `{}`)
		p.drain()
	}, func(t *testing.T, c *Client) {
		r := named("count")
		r.Payload, r.Window = json.RawMessage(`{}`), Window{Items: 2, Bytes: 1 << 20}
		call := do(t, c, r)
		_, err := call.Result()
		faultOf(t, err, wire.CodePluginMalformed, wire.CodeFlowControlViolation)
		if _, err := do(t, c, echo(`{}`)).Result(); err != nil {
			t.Fatal(err)
		}
		if n := c.Counts().LateFrames; n != 1 {
			t.Fatal(n)
		}
	})
}

// The request stream keeps the plugin's credit; too large an item is refused here.
func TestRequestStream(t *testing.T) {
	session(t, testOptions(), func(p *scripted) {
		g, r := p.request()
		if r.Stream == nil || !r.Stream.Request || string(r.Payload) != "null" {
			p.t.Errorf("%+v", r)
		}
		var items, bytes int64
		for range 5 {
			p.send(&wire.Flow{RequestID: r.RequestID, CreditItems: 2, CreditBytes: 2000})
			for range 2 {
				i := p.next(wire.TypeStreamItem)
				if body := decode[wire.StreamItem](p.t, i); body.Index != items {
					p.t.Errorf("index %d", body.Index)
				}
				items, bytes = items+1, bytes+int64(i.size)
			}
		}
		end := decode[wire.StreamEnd](p.t, p.next(wire.TypeStreamEnd))
		if end.ItemCount != items || end.ByteCount != bytes {
			p.t.Errorf("%+v, %d items and %d bytes came", end, items, bytes)
		}
		p.answer(g, r, `{"sum":10}`)
		p.drain()
	}, func(t *testing.T, c *Client) {
		call := do(t, c, named("sum"))
		for i := range 10 {
			if err := call.Send(json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))); err != nil {
				t.Fatal(err)
			}
			var bad *BadRequest
			if err := call.Send(json.RawMessage(`{"wrong":1}`)); !errors.As(err, &bad) || bad.Code != wire.CodeSchemaMismatch {
				t.Fatal(err)
			}
			large := `{"v":"` + strings.Repeat("x", 30_000) + `"}`
			if err := call.Send(json.RawMessage(large)); !errors.As(err, &bad) || bad.Code != wire.CodeResourceExhausted {
				t.Fatal(err)
			}
		}
		if err := call.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if err := call.Send(json.RawMessage(`{}`)); err != ErrNoStream {
			t.Fatal(err)
		}
		if result, err := call.Result(); err != nil || string(result.Payload) != `{"sum":10}` {
			t.Fatal(result, err)
		}
	})
}

// A plugin may answer before it has read the whole stream: Send then says so.
func TestRequestStreamEndedEarly(t *testing.T) {
	session(t, testOptions(), func(p *scripted) {
		g, r := p.request()
		p.answer(g, r, `{}`)
		g, r = p.request()
		p.send(errorFor(r, wire.CodeInvalidArgument), g)
		p.drain()
	}, func(t *testing.T, c *Client) {
		call := do(t, c, named("sum"))
		if err := call.Send(json.RawMessage(`{}`)); err != io.EOF {
			t.Fatal(err)
		}
		call = do(t, c, named("sum"))
		var e *wire.Error
		if err := call.Send(json.RawMessage(`{}`)); !errors.As(err, &e) || e.Code != wire.CodeInvalidArgument {
			t.Fatal(err)
		}
	})
}
