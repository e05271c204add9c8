package plugin_test

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// A frameHost speaks frames to a plugin in the same process.
type frameHost struct {
	t        testing.TB
	in       *io.PipeWriter
	frames   chan wire.Body // what the plugin sent; closed at its end
	cancel   context.CancelFunc
	served   chan error
	sequence uint64
}

func newFrameHost(t testing.TB, p *plugin.SessionPlugin) *frameHost {
	in, hostOut := io.Pipe()
	hostIn, out := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	h := &frameHost{t: t, in: hostOut, frames: make(chan wire.Body, 1000), cancel: cancel, served: make(chan error, 1)}
	t.Cleanup(cancel)
	go func() {
		err := plugin.ServeSession(ctx, in, out, p)
		in.Close()
		out.Close()
		h.served <- err
	}()
	go func() {
		defer close(h.frames)
		r := wire.NewFrameReader(hostIn)
		for {
			frame, err := r.Next(nil)
			if err != nil {
				return
			}
			var e wire.Envelope
			if err := wire.Scan(frame, &e); err != nil {
				t.Errorf("%v: %s", err, frame)
				return
			}
			body := wire.NewBody(e.Type)
			if err := wire.Decode(e.Body, body); err != nil {
				t.Errorf("%v: %s", err, frame)
				return
			}
			h.frames <- body
		}
	}()
	return h
}

func (h *frameHost) raw(frame string) {
	h.t.Helper()
	if err := wire.WriteFrame(h.in, []byte(frame), wire.DefaultMaxFrame); err != nil {
		h.t.Fatal(err)
	}
}

func (h *frameHost) send(body wire.Body) {
	h.t.Helper()
	h.sequence++
	e := wire.Envelope{Version: wire.MaxVersion, MessageID: wire.NewUUID(), Sequence: h.sequence, Timestamp: time.Now()}
	h.raw(string(wire.AppendMessage(nil, &e, body)))
}

// next returns the next frame, or nil at the end.
func (h *frameHost) next() wire.Body {
	h.t.Helper()
	select {
	case body := <-h.frames:
		return body
	case <-time.After(10 * time.Second):
		h.t.Fatal("no frame")
		return nil
	}
}

func (h *frameHost) expect(want wire.MessageType) wire.Body {
	h.t.Helper()
	body := h.next()
	if body == nil || body.Type() != want {
		h.t.Fatalf("%+v, want %s", body, want)
	}
	return body
}

func (h *frameHost) ready() {
	h.t.Helper()
	features := []wire.Feature{}
	for _, f := range wire.Features {
		features = append(features, f.Feature)
	}
	h.send(&wire.Hello{HostVersion: "1", Protocol: wire.VersionRange{Min: wire.MinVersion, Max: wire.MaxVersion}, Requires: []wire.Feature{}, Supports: features,
		Codecs: []string{"json"}, MaxFrameBytes: wire.DefaultMaxFrame})
	h.expect(wire.TypeHelloAck)
	digest, err := wire.Digest([]byte("{}"))
	if err != nil {
		h.t.Fatal(err)
	}
	h.send(&wire.Init{InstanceID: "i", Grants: []wire.Grant{}, Settings: []byte("{}"), SettingsDigest: digest,
		Limits: wire.Limits{RequestTimeoutMs: 60_000, HeartbeatIntervalMs: 1000, MaxInFlight: 10}, AcceptedClasses: wire.PayloadClasses})
	h.expect(wire.TypeInitAck)
}

// end waits for the plugin to end.
func (h *frameHost) end() error {
	h.t.Helper()
	select {
	case err := <-h.served:
		return err
	case <-time.After(10 * time.Second):
		h.t.Fatal("the plugin does not end")
		return nil
	}
}

// FuzzSession feeds a plugin any bytes, alone and after a good beginning. It must end,
// and whatever it sends must be frames that a host can read.
func FuzzSession(f *testing.F) {
	message := func(sequence uint64, body wire.Body) string {
		e := wire.Envelope{Version: wire.MaxVersion, MessageID: wire.NewUUID(), Sequence: sequence, Timestamp: time.Now()}
		var b bytes.Buffer
		if err := wire.WriteFrame(&b, wire.AppendMessage(nil, &e, body), wire.DefaultMaxFrame); err != nil {
			f.Fatal(err)
		}
		return b.String()
	}
	request := &wire.Request{RequestID: wire.NewUUID(), OperationID: wire.NewUUID(), Attempt: 1, CapabilityID: "test", OperationName: "relay", OperationVersion: "1.0",
		PayloadClass: wire.ClassInternal, Payload: []byte("null"), Stream: &wire.Stream{Request: true, Response: true, CreditItems: wire.CountOf(3), CreditBytes: wire.CountOf(1000)}}
	for _, seed := range []string{"", "\x00\x00\x00\x02{}", message(3, request), message(3, request) + message(4, &wire.StreamItem{RequestID: request.RequestID, OperationID: request.OperationID, Payload: []byte(`{"n":1}`)}) +
		message(5, &wire.StreamEnd{RequestID: request.RequestID, OperationID: request.OperationID}), message(3, &wire.HealthCheck{Watch: true}), message(3, &wire.GoAway{GraceMs: 1}),
		message(3, &wire.CancelRequest{RequestID: request.RequestID}), message(3, &wire.Flow{RequestID: request.RequestID, CreditItems: 1})} {
		f.Add(true, []byte(seed))
		f.Add(false, []byte(seed))
	}
	pkg, err := plugin.LoadPackage(writePackage(f, manifestOf(f, []op{{name: "relay", in: true, out: true}}, nil), schemas))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, begun bool, stream []byte) {
		p := plugin.NewSessionPlugin(pkg)
		p.Handle("test", "relay", relay)
		h := newFrameHost(t, p)
		if begun {
			h.ready()
		}
		go func() {
			for range h.frames {
			}
		}()
		h.in.Write(stream) // fails where the plugin has ended
		h.in.Close()
		h.end()
	})
}
