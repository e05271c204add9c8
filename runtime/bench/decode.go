package main

import (
	"encoding/json"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/switchyard-plugins/switchyard/runtime/bench/echo/items"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// A plainEnvelope has the members of an envelope as a user of the library would write
// them: nothing but their JSON types is looked at, and the payload is kept raw.
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
}

type plainItem struct {
	RequestID   string         `json:"requestId"`
	OperationID string         `json:"operationId"`
	Index       int64          `json:"index"`
	Payload     jsontext.Value `json:"payload"`
}

// decodings is how many frames one round decodes.
const decodings = 20_000

func (w *world) decodeRequest(runs int) (pair, error) {
	return decoding(runs, "request", &wire.Request{RequestID: wire.NewUUID(), OperationID: wire.NewUUID(), Attempt: 1,
		Deadline: time.Now(), CapabilityID: "bench", OperationName: "echo", OperationVersion: "1.0", PayloadClass: wire.ClassInternal,
		Payload: json.RawMessage(items.Payload)}, new(wire.Request)), nil
}

func (w *world) decodeItem(runs int) (pair, error) {
	return decoding(runs, "streamItem", &wire.StreamItem{RequestID: wire.NewUUID(), OperationID: wire.NewUUID(), Index: 123_456,
		Payload: items.Append(nil, 123_456)}, new(wire.StreamItem)), nil
}

// decoding compares the strict reading of one frame, envelope and body with all their
// rules, with what the library does for the same struct: it too refuses duplicate
// members, unknown members and invalid UTF-8.
func decoding(runs int, kind string, body, into wire.Body) pair {
	frame := wire.AppendMessage(nil, &wire.Envelope{Version: wire.MaxVersion, MessageID: wire.NewUUID(), Sequence: 7, Timestamp: time.Now()}, body)
	return pair{runs: runs * 2, limit: 1.35, ourUse: "strict decoding of 20,000 frames of type " + kind, vs: "go-json-experiment/json into a struct",
		ours: func() error {
			for range decodings {
				var e wire.Envelope
				if err := wire.Scan(frame, &e); err != nil {
					return err
				}
				if err := wire.Decode(e.Body, into); err != nil {
					return err
				}
			}
			return nil
		},
		other: func() error {
			for range decodings {
				var e plainEnvelope
				if err := jsonv2.Unmarshal(frame, &e, jsonv2.RejectUnknownMembers(true)); err != nil {
					return err
				}
			}
			return nil
		}}
}
