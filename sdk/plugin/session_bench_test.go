package plugin_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// benchHost speaks to a plugin over pipes of the operating system and reads frames
// without looking into them more than it must.
func benchHost(b *testing.B, p *plugin.SessionPlugin) (send func(body wire.Body), next func() (wire.MessageType, error)) {
	in, hostOut, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	hostIn, out, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		served <- plugin.ServeSession(context.Background(), in, out, p)
		out.Close()
	}()
	b.Cleanup(func() {
		hostOut.Close()
		if err := <-served; err != nil {
			b.Error(err)
		}
	})
	var sequence uint64
	var buf []byte
	send = func(body wire.Body) {
		sequence++
		e := wire.Envelope{Version: wire.MaxVersion, MessageID: wire.NewUUID(), Sequence: sequence, Timestamp: time.Now()}
		frame, start := wire.BeginFrame(buf[:0])
		frame = wire.AppendMessage(frame, &e, body)
		if err := wire.EndFrame(frame, start, wire.DefaultMaxFrame); err != nil {
			b.Fatal(err)
		}
		buf = frame
		if _, err := hostOut.Write(frame); err != nil {
			b.Fatal(err)
		}
	}
	frames := wire.NewFrameReader(hostIn)
	read := make([]byte, 64<<10)
	next = func() (wire.MessageType, error) {
		var e wire.Envelope
		frame, err := frames.Next(read)
		if err == nil {
			err = wire.Scan(frame, &e)
		}
		return e.Type, err
	}
	send(&wire.Hello{HostVersion: "1", Protocol: wire.VersionRange{Min: wire.MinVersion, Max: wire.MaxVersion}, Requires: []wire.Feature{}, Supports: []wire.Feature{wire.FlowCredit},
		Codecs: []string{"json"}, MaxFrameBytes: wire.DefaultMaxFrame})
	digest, err := wire.Digest([]byte("{}"))
	if err != nil {
		b.Fatal(err)
	}
	if _, err := next(); err != nil {
		b.Fatal(err)
	}
	send(&wire.Init{InstanceID: "i", Grants: []wire.Grant{}, Settings: []byte("{}"), SettingsDigest: digest,
		Limits: wire.Limits{RequestTimeoutMs: 600_000, HeartbeatIntervalMs: 1000, MaxInFlight: 10}, AcceptedClasses: wire.PayloadClasses})
	if t, err := next(); err != nil || t != wire.TypeInitAck {
		b.Fatal(t, err)
	}
	return send, next
}

func benchRequest(operation string, payload json.RawMessage) *wire.Request {
	return &wire.Request{RequestID: wire.NewUUID(), OperationID: wire.NewUUID(), Attempt: 1, CapabilityID: "test", OperationName: operation, OperationVersion: "1.0",
		PayloadClass: wire.ClassInternal, Payload: payload}
}

// BenchmarkSessionUnary is one request at a time, checked against its schemas.
func BenchmarkSessionUnary(b *testing.B) {
	send, next := benchHost(b, newSession(b, op{name: "echo", handler: echo}))
	b.ReportAllocs()
	for b.Loop() {
		send(benchRequest("echo", json.RawMessage(`{"n":1,"filler":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}`)))
		if t, err := next(); err != nil || t != wire.TypeResponse {
			b.Fatal(t, err)
		}
	}
}

// BenchmarkSessionStream is items of about 400 bytes a frame.
func BenchmarkSessionStream(b *testing.B) {
	const items = 10_000
	item := json.RawMessage(`{"n":1,"filler":"` + strings.Repeat("x", 30) + `"}`)
	send, next := benchHost(b, newSession(b, op{name: "count", out: true, handler: func(_ context.Context, o *plugin.Operation) (any, error) {
		for range items {
			if err := o.Send(item); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}}))
	b.ReportAllocs()
	begin, n := time.Now(), 0
	for b.Loop() {
		r := benchRequest("count", json.RawMessage(`{"n":1}`))
		r.Stream = &wire.Stream{Response: true, CreditItems: wire.CountOf(items), CreditBytes: wire.CountOf(1 << 40)}
		send(r)
		for {
			t, err := next()
			if err != nil {
				b.Fatal(err)
			}
			if n++; t == wire.TypeResponse {
				break
			}
		}
	}
	b.ReportMetric(float64(n)/time.Since(begin).Seconds(), "items/s")
}
