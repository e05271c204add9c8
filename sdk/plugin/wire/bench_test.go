package wire_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// The library's side of the comparison: the same members in a struct as a user of
// the library would write it, the payload kept raw.
type plainEnvelope struct {
	ProtocolVersion string                    `json:"protocolVersion"`
	MessageType     string                    `json:"messageType"`
	MessageID       string                    `json:"messageId"`
	Sequence        uint64                    `json:"sequence"`
	TimestampUtc    string                    `json:"timestampUtc"`
	TraceID         *string                   `json:"traceId"`
	CausationID     *string                   `json:"causationId"`
	Request         *plainRequest             `json:"request"`
	Item            *plainItem                `json:"streamItem"`
	Extensions      map[string]jsontext.Value `json:"extensions"`
}

type plainRequest struct {
	RequestID          string         `json:"requestId"`
	OperationID        string         `json:"operationId"`
	IdempotencyKey     *string        `json:"idempotencyKey"`
	Attempt            int64          `json:"attempt"`
	DeadlineUtc        *string        `json:"deadlineUtc"`
	CapabilityID       string         `json:"capabilityId"`
	OperationName      string         `json:"operationName"`
	OperationVersion   string         `json:"operationVersion"`
	PermissionsGrantID *string        `json:"permissionsGrantId"`
	PayloadClass       string         `json:"payloadClass"`
	Payload            jsontext.Value `json:"payload"`
	Stream             *struct {
		Request            bool  `json:"request"`
		Response           bool  `json:"response"`
		InitialCreditItems int64 `json:"initialCreditItems"`
		InitialCreditBytes int64 `json:"initialCreditBytes"`
	} `json:"stream"`
}

type plainItem struct {
	RequestID   string         `json:"requestId"`
	OperationID string         `json:"operationId"`
	Index       int64          `json:"index"`
	Payload     jsontext.Value `json:"payload"`
}

func decodePlain(frame []byte) error {
	var e plainEnvelope
	return jsonv2.Unmarshal(frame, &e, jsonv2.RejectUnknownMembers(true))
}

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

func BenchmarkDecode(b *testing.B) {
	for name, frame := range benchFrames(b) {
		for side, decode := range map[string]func([]byte) error{"wire": decodeWire, "library": decodePlain} {
			b.Run(name+"/"+side, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(frame)))
				for b.Loop() {
					if err := decode(frame); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkRatio reports the time of strict decoding as a multiple of what the
// bare library takes, as the median of interleaved pairs: other work on the
// machine hits both alike.
func BenchmarkRatio(b *testing.B) {
	for name, frame := range benchFrames(b) {
		b.Run(name, func(b *testing.B) {
			batch := func(decode func([]byte) error) time.Duration {
				begin := time.Now()
				for range 64 {
					if err := decode(frame); err != nil {
						b.Fatal(err)
					}
				}
				return time.Since(begin)
			}
			var ratios []float64
			for b.Loop() {
				ratios = append(ratios, float64(batch(decodeWire))/float64(batch(decodePlain)))
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "ratio")
			b.ReportMetric(0, "ns/op")
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
