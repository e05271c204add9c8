package wire_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

func decodeWire(frame []byte) error {
	var e wire.Envelope
	if err := wire.Scan(frame, &e); err != nil {
		return err
	}
	switch e.Type {
	case wire.TypeRequest:
		var r wire.Request
		return wire.Decode(e.Body, &r)
	default:
		var i wire.StreamItem
		return e.ReadItem(&i)
	}
}

// benchFrames are a request and an item as they go over the wire, without white
// space.
func benchFrames(tb testing.TB) map[string][]byte {
	var request bytes.Buffer
	if err := json.Compact(&request, []byte(requestFrame)); err != nil {
		tb.Fatal(err)
	}
	item := wire.AppendMessage(nil, &wire.Envelope{Version: wire.MaxVersion, MessageID: wire.NewUUID(), Sequence: 7, Timestamp: time.Now()},
		&wire.StreamItem{RequestID: wire.NewUUID(), OperationID: wire.NewUUID(), Index: 3, Payload: []byte(`{"word":"switchyard","count":3,"first":"docs/a.md"}`)})
	return map[string][]byte{"request": request.Bytes(), "item": item}
}

// BenchmarkDecode is strict decoding; runtime/bench compares it with the bare library.
func BenchmarkDecode(b *testing.B) {
	for name, frame := range benchFrames(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(frame)))
			for b.Loop() {
				if err := decodeWire(frame); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEncodeItem(b *testing.B) {
	e := wire.Envelope{Version: wire.MaxVersion, Sequence: 7, Timestamp: time.Now(), MessageID: wire.NewUUID()}
	item := wire.StreamItem{RequestID: wire.NewUUID(), OperationID: wire.NewUUID(), Payload: []byte(`{"word":"switchyard","count":3,"first":"docs/a.md"}`)}
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		e.Sequence++
		item.Index++
		e.MessageID = wire.NewUUID()
		buf = wire.AppendMessage(buf[:0], &e, &item)
	}
}
