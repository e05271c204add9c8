package session

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// pipes is one end of a connection over the system's pipes, as a child process has it.
type pipes struct{ in, out *os.File }

func (p pipes) Read(b []byte) (int, error)  { return p.in.Read(b) }
func (p pipes) Write(b []byte) (int, error) { return p.out.Write(b) }
func (p pipes) CloseWrite() error           { return p.out.Close() }
func (p pipes) Close() error {
	p.out.Close()
	return p.in.Close()
}

func systemPipes(t testing.TB) (host, plugin pipes) {
	r1, w1, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r2, w2, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return pipes{r1, w2}, pipes{r2, w1}
}

// servePlugin is a plugin that answers as fast as it can: echo, and count with as many
// items of one payload as the request's number says.
func servePlugin(conn pipes, item string) {
	out := newOutbox(conn, time.Now, func(error) {})
	out.agree(wire.MaxVersion, wire.DefaultMaxFrame)
	defer out.close()
	frames := wire.NewFrameReader(conn)
	var e wire.Envelope
	var buf []byte
	var credit wire.Credit
	var stream wire.Request
	var message wire.UUID
	var index, total, bytes int64
	pump := func() {
		for index < total {
			s, _ := out.addIf(&wire.StreamItem{RequestID: stream.RequestID, OperationID: stream.OperationID, Index: index, Payload: json.RawMessage(item)},
				wire.TraceID{}, wire.NullUUID{}, func(size int) bool { return credit.Take(int64(size)) })
			if s.size == 0 {
				return
			}
			index, bytes = index+1, bytes+int64(s.size)
		}
		if total > 0 {
			out.add(&wire.StreamEnd{RequestID: stream.RequestID, OperationID: stream.OperationID, ItemCount: index, ByteCount: bytes}, wire.TraceID{}, wire.NullUUID{})
			out.add(&wire.Response{RequestID: stream.RequestID, OperationID: stream.OperationID, PayloadClass: wire.ClassInternal}, wire.TraceID{}, wire.Some(message))
			total = 0
		}
	}
	for {
		frame, err := frames.Next(buf)
		if err != nil {
			return
		}
		buf = frame[:0]
		if err := wire.Scan(frame, &e); err != nil {
			panic(err)
		}
		switch e.Type {
		case wire.TypeHello:
			peer := testPeer()
			out.add(&wire.HelloAck{ProtocolVersion: wire.MaxVersion, EnabledFeatures: peer.Features, Requires: peer.Needs, Codec: wire.CodecJSON,
				MaxFrameBytes: wire.DefaultMaxFrame, ManifestDigest: reviewed, Plugin: identity, Deprecations: []wire.Deprecation{}}, wire.TraceID{}, wire.Some(e.MessageID))
		case wire.TypeInit:
			out.add(&wire.InitAck{Status: wire.InitReady, Capabilities: testPeer().Capabilities}, wire.TraceID{}, wire.Some(e.MessageID))
		case wire.TypeRequest:
			var r wire.Request
			if err := wire.Decode(e.Body, &r); err != nil {
				panic(err)
			}
			if r.OperationName == "echo" {
				out.add(&wire.Response{RequestID: r.RequestID, OperationID: r.OperationID, PayloadClass: wire.ClassInternal, Payload: r.Payload}, wire.TraceID{}, wire.Some(e.MessageID))
				continue
			}
			stream, message, index, bytes, credit = r, e.MessageID, 0, 0, wire.Credit{}
			fmt.Sscan(string(r.Payload), &total)
			credit.Grant(r.Stream.CreditItems.N, r.Stream.CreditBytes.N)
			pump()
		case wire.TypeFlow:
			var f wire.Flow
			if err := wire.Decode(e.Body, &f); err != nil {
				panic(err)
			}
			if f.RequestID == stream.RequestID {
				credit.Grant(f.CreditItems, f.CreditBytes)
				pump()
			}
		}
	}
}

// openPipes opens a session with servePlugin on the system's pipes.
func openPipes(t testing.TB, item string) *Client {
	host, plugin := systemPipes(t)
	go servePlugin(plugin, item)
	opts := testOptions()
	for i := range opts.Peer.Operations { // what a schema costs is measured elsewhere
		opts.Peer.Operations[i].Request, opts.Peer.Operations[i].Response = none, none
	}
	c, err := Open(context.Background(), host, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func none(json.RawMessage) *wire.Fault { return nil }

func BenchmarkUnary(b *testing.B) {
	for _, parallel := range []int{1, 16} {
		b.Run(fmt.Sprintf("inFlight=%d", parallel), func(b *testing.B) {
			c := openPipes(b, "")
			payload := `{"value":"` + strings.Repeat("x", 32) + `"}`
			work := make(chan struct{}, parallel)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				work <- struct{}{}
				call, err := c.Do(context.Background(), echo(payload))
				if err != nil {
					b.Fatal(err)
				}
				if parallel == 1 {
					if _, err := call.Result(); err != nil {
						b.Fatal(err)
					}
					<-work
					continue
				}
				go func() {
					defer func() { <-work }()
					if _, err := call.Result(); err != nil {
						b.Error(err)
					}
				}()
			}
			for range parallel {
				work <- struct{}{}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
		})
	}
}

// Items of which the whole frame has about 400 bytes.
func BenchmarkStream(b *testing.B) {
	item := `{"n":1,"v":"` + strings.Repeat("x", 20) + `"}`
	c := openPipes(b, item)
	r := named("count")
	r.Timeout = time.Hour
	r.Payload = json.RawMessage(fmt.Sprint(b.N))
	b.ReportAllocs()
	b.ResetTimer()
	call, err := c.Do(context.Background(), r)
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	for {
		if _, err := call.Next(); err == io.EOF {
			break
		} else if err != nil {
			b.Fatal(err)
		}
		n++
	}
	result, err := call.Result()
	if err != nil || n != b.N {
		b.Fatal(n, err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "items/s")
	b.ReportMetric(float64(result.Bytes)/float64(b.N), "bytes/frame")
}
