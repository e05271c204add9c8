package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/switchyard-plugins/switchyard/schemas/ijson"
)

// baseMembers are those of every envelope, in the order in which the runner
// writes them.
var baseMembers = []string{"protocolVersion", "messageType", "messageId", "sequence", "timestampUtc", "traceId", "causationId", "extensions"}

// checkFrame holds a frame to what is true of every frame that a program may
// send, in any case of the corpus.
func (r *run) checkFrame(got received) (*frame, error) {
	f := &frame{size: len(got.text), text: got.text, arrived: got.at}
	if err := ijson.Check(got.text); err != nil {
		var fault *ijson.Error
		errors.As(err, &fault)
		return nil, fmt.Errorf("a frame that is not strict JSON: %s: %s (%.60q…)", fault.Code, fault.Message, got.text)
	}
	if json.Unmarshal(got.text, &f.envelope) != nil || f.envelope == nil {
		return f, errors.New("an envelope that is no object")
	}
	if f.size > r.conn.maxFrame {
		return f, fmt.Errorf("a frame of %d bytes where %d were agreed", f.size, r.conn.maxFrame)
	}
	if err := r.checkEnvelope(f); err != nil {
		return f, err
	}
	if feature := features.get()[f.kind]; feature != "" && !r.conn.enabled[feature] {
		return f, fmt.Errorf("a %s although %s is not on", f.kind, feature)
	}
	if err := checkShape(f.kind, f.body); err != nil {
		return f, err
	}
	if f.kind == "helloAck" {
		r.negotiated(f)
	}
	if id := at(f.body, "requestId"); id != nil && string(id) != "null" {
		f.request = strings.Trim(string(id), `"`)
	}
	return f, r.checkReply(f)
}

func (r *run) checkEnvelope(f *frame) error {
	e := f.envelope
	for _, name := range baseMembers {
		if e[name] == nil {
			return fmt.Errorf("an envelope without %s", name)
		}
	}
	f.kind = strings.Trim(string(e["messageType"]), `"`)
	if _, known := shapes.get()[f.kind]; !known || slices.Contains([]string{"identity", "deprecation", "capability", "operation", "problem", "range"}, f.kind) {
		return fmt.Errorf("a frame of the type %s, which no program sends", e["messageType"])
	}
	for name := range e {
		if name != f.kind && !slices.Contains(baseMembers, name) {
			return fmt.Errorf("an envelope with the member %q", name)
		}
	}
	if f.body = e[f.kind]; f.body == nil {
		return fmt.Errorf("a %s frame without the member %s", f.kind, f.kind)
	}
	if v := strings.Trim(string(e["protocolVersion"]), `"`); !versionForm.get().MatchString(v) || r.conn.acked && v != r.conn.version {
		return fmt.Errorf("protocolVersion %q where %q was agreed", v, r.conn.version)
	}
	n, err := strconv.ParseUint(string(e["sequence"]), 10, 64)
	if err != nil || n != r.conn.got+1 {
		return fmt.Errorf("sequence %s after %d", e["sequence"], r.conn.got)
	}
	r.conn.got = n
	id := strings.Trim(string(e["messageId"]), `"`)
	switch {
	case !uuidForm.get().MatchString(id):
		return fmt.Errorf("messageId %q, which is no UUID", id)
	case id[14] != '7':
		return fmt.Errorf("messageId %q, which is no UUID of version 7", id)
	case r.conn.ids[id]:
		return fmt.Errorf("messageId %q for the second time", id)
	}
	r.conn.ids[id] = true
	if t := strings.Trim(string(e["timestampUtc"]), `"`); !isTime(t) {
		return fmt.Errorf("timestampUtc %q", t)
	}
	if t := string(e["traceId"]); t != "null" && !traceForm.get().MatchString(strings.Trim(t, `"`)) {
		return fmt.Errorf("traceId %s", t)
	}
	if x := e["extensions"]; x[0] != '{' || len(x) > 16<<10 {
		return errors.New("extensions that are no object of at most 16 KiB")
	}
	return nil
}

func (r *run) negotiated(f *frame) {
	var ack struct {
		ProtocolVersion string
		EnabledFeatures []string
		MaxFrameBytes   int
	}
	if json.Unmarshal(f.body, &ack) != nil {
		return // its shape was checked
	}
	r.conn.acked, r.conn.version, r.conn.maxFrame = true, ack.ProtocolVersion, min(r.conn.maxFrame, ack.MaxFrameBytes)
	for _, name := range ack.EnabledFeatures {
		r.conn.enabled[name] = true
	}
}

// answers names the types of frames that answer one frame each, and what they
// answer.
var answers = lazy[map[string]string]{make: func() map[string]string {
	return map[string]string{
		"helloAck": "hello", "initAck": "init", "settingsValidated": "settingsValidate", "cancelAck": "cancel", "heartbeatAck": "heartbeat", "receipt": "receiptQuery",
	}
}}

// A fixed is what the protocol gives a code, whoever sends it; a handler may call
// its own failure retryable or not.
type fixed struct {
	retryable, blame string
}

var codes = lazy[map[string]fixed]{make: func() map[string]fixed {
	return map[string]fixed{
		"unsupported_protocol": {"false", "plugin"}, "missing_required_feature": {"false", "plugin"},
		"permission_denied": {"false", "host"}, "grant.expired": {"false", "host"}, "payload_class.denied": {"false", "host"},
		"failed_precondition": {"false", "caller"}, "not_found": {"false", "caller"}, "already_exists": {"false", "caller"}, "conflict": {"true", "caller"},
		"resource_exhausted": {"true", "environment"}, "unavailable": {"true", "environment"}, "deadline_exceeded": {"true", "environment"}, "secret.unresolved": {"false", "environment"},
		"internal":      {"false", "plugin"},
		"frame.invalid": {"false", ""}, "frame.too_large": {"false", ""}, "envelope.invalid": {"false", ""}, "sequence.violation": {"false", ""}, "state.violation": {"false", ""},
		"json.syntax": {"false", ""}, "json.duplicate_name": {"false", ""}, "json.invalid_unicode": {"false", ""}, "json.limit": {"false", ""}, "json.number": {"false", ""},
		"flow_control_violation": {"false", ""}, "invalid_argument": {"false", ""}, "schema.mismatch": {"false", ""}, "schema.unknown_member": {"false", ""},
		"unknown_operation": {"false", ""}, "unsupported_operation_version": {"false", ""}, "deprecated.sunset": {"false", ""},
	}
}}

// failing are the operations whose handlers decide by themselves whether their
// failure is retryable.
var failing = []string{"fail", "append", "note", "count", "count-once", "secret", "hold", "stubborn"}

// checkCode holds an error to what the protocol says of its code.
func (r *run) checkCode(f *frame, l *label) error {
	code := strings.Trim(string(at(f.body, "code")), `"`)
	rule, known := codes.get()[code]
	if !known {
		return fmt.Errorf("an error with the code %q, which is no plugin's", code)
	}
	own := l != nil && slices.Contains(failing, l.op.name)
	if got := string(at(f.body, "retryable")); got != rule.retryable && !own {
		return fmt.Errorf("an error %s with retryable %s", code, got)
	}
	if got := strings.Trim(string(at(f.body, "blameDomain")), `"`); got != rule.blame && rule.blame != "" {
		return fmt.Errorf("an error %s with blameDomain %q", code, got)
	}
	return nil
}

// checkReply holds a frame to what it answers and to the stream it is part of.
func (r *run) checkReply(f *frame) error {
	causation := strings.Trim(string(f.envelope["causationId"]), `"`)
	asked, known := r.conn.asked[causation]
	if causation != "null" && !known {
		return fmt.Errorf("a %s with the causationId %s, which was never sent", f.kind, causation)
	}
	if want := answers.get()[f.kind]; want != "" && asked != want {
		return fmt.Errorf("a %s whose causationId names no %s", f.kind, want)
	}
	if f.kind == "error" {
		if err := r.checkCode(f, r.labelled(f.request)); err != nil {
			return err
		}
	}
	if f.request == "" {
		return nil
	}
	l := r.labelled(f.request)
	if l == nil {
		return fmt.Errorf("a %s with the requestId %s, which was never sent", f.kind, f.request)
	}
	if id := at(f.body, "operationId"); id != nil && strings.Trim(string(id), `"`) != l.operationID {
		return fmt.Errorf("a %s with the operationId %s, where the request has %s", f.kind, id, l.operationID)
	}
	if trace := string(f.envelope["traceId"]); trace != l.trace && l.trace != "" {
		return fmt.Errorf("a %s with the traceId %s, where the request has %s", f.kind, trace, l.trace)
	}
	r.counts[l.name+" "+f.kind]++
	if l.terminal != "" && f.kind != "cancelAck" {
		return fmt.Errorf("a %s after the %s that ended the request", f.kind, l.terminal)
	}
	switch f.kind {
	case "response", "error", "cancelled":
		l.terminal = f.kind
		if causation != l.messageID {
			return fmt.Errorf("a %s whose causationId is not the request's messageId", f.kind)
		}
		if f.kind == "response" && l.op.streamsOut {
			if !l.ended {
				return errors.New("a response before the streamEnd of its stream")
			}
			if payload := at(f.body, "payload"); string(payload) != "null" {
				return fmt.Errorf("a response with a payload after a stream: %s", payload)
			}
		}
		if at(f.body, "receipt") != nil && !r.conn.enabled["receipt.v1"] {
			return fmt.Errorf("a receipt in a %s although receipt.v1 is not on", f.kind)
		}
	case "cancelAck":
		if !l.cancels[causation] {
			return errors.New("a cancelAck of another request's cancel")
		}
	default:
		if causation != "null" && causation != l.messageID {
			return fmt.Errorf("a %s whose causationId is neither null nor the request's messageId", f.kind)
		}
	}
	return r.checkStream(f, l)
}

// checkStream holds items to their order and to the credit that was given.
func (r *run) checkStream(f *frame, l *label) error {
	switch f.kind {
	case "flow":
		items, bytes := number(f.body, "creditItems"), number(f.body, "creditBytes")
		if !l.op.streamsIn {
			return errors.New("a flow for a request that streams nothing in")
		}
		l.ourItems, l.ourBytes = l.ourItems+items, l.ourBytes+bytes
	case "streamItem":
		if !l.op.streamsOut {
			return errors.New("a streamItem of an operation that streams nothing out")
		}
		if l.ended {
			return errors.New("a streamItem after its streamEnd")
		}
		if index := number(f.body, "index"); index != l.gotItems {
			return fmt.Errorf("item %d where %d is next", index, l.gotItems)
		}
		size := int64(f.size)
		covered := l.items >= 1 && l.bytes >= size
		if !covered && l.overdrawn {
			return fmt.Errorf("a second item beyond its credit: %d bytes where %d items and %d bytes are left", size, l.items, l.bytes)
		}
		l.overdrawn = !covered
		l.items, l.bytes = l.items-1, l.bytes-size
		l.gotItems, l.gotBytes = l.gotItems+1, l.gotBytes+size
	case "streamEnd":
		if l.ended {
			return errors.New("a second streamEnd")
		}
		l.ended = true
		if items, bytes := number(f.body, "itemCount"), number(f.body, "byteCount"); items != l.gotItems || bytes != l.gotBytes {
			return fmt.Errorf("a streamEnd of %d items and %d bytes after %d items and %d bytes", items, bytes, l.gotItems, l.gotBytes)
		}
	}
	return nil
}

func (r *run) labelled(requestID string) *label { return r.requests[requestID] }

// number returns a member that was checked to be an integer.
func number(body json.RawMessage, name string) int64 {
	n, err := strconv.ParseInt(string(at(body, name)), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// describe tells of a frame in a line.
func (r *run) describe(f *frame) string {
	if f.kind == "" {
		return fmt.Sprintf("%.400s", f.text)
	}
	who := ""
	if l := r.labelled(f.request); l != nil && l.name != defaultLabel {
		who = " of " + l.name
	}
	return fmt.Sprintf("%s%s %.400s", f.kind, who, f.body)
}
