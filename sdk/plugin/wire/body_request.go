package wire

import (
	"encoding/json"
	"strconv"
	"time"
)

// A Request asks for one attempt at one operation.
type Request struct {
	RequestID          UUID
	OperationID        UUID
	IdempotencyKey     string // "" is null: nothing is deduplicated
	Attempt            int64
	Deadline           time.Time // the zero value is null: there is none
	CapabilityID       string
	OperationName      string
	OperationVersion   string
	PermissionsGrantID string // "" is null: no permission goes with it
	PayloadClass       PayloadClass
	Payload            json.RawMessage // part of what was decoded; null for a request stream
	Stream             *Stream         // nil if nothing streams
	DiagnosticPolicy   DiagnosticPolicy
	Retention          Retention
	Secrets            []Secret
}

// A Stream says in which directions items flow, and the credit of the response.
type Stream struct {
	Request, Response bool
	CreditItems       Count
	CreditBytes       Count
}

// A Count is a number that may be absent.
type Count struct {
	N   int64
	Set bool
}

// CountOf returns n as a Count that is there.
func CountOf(n int64) Count { return Count{N: n, Set: true} }

// A Secret is a value for one place of the settings.
type Secret struct {
	Pointer string // JSON Pointer in the settings
	Value   string
}

// Type is TypeRequest.
func (*Request) Type() MessageType { return TypeRequest }

// AppendJSON implements Body.
func (b *Request) AppendJSON(dst []byte) []byte {
	w := begin(dst)
	w.uuid("requestId", b.RequestID)
	w.uuid("operationId", b.OperationID)
	w.orNull("idempotencyKey", b.IdempotencyKey)
	w.integer("attempt", b.Attempt)
	if b.Deadline.IsZero() {
		w.null("deadlineUtc")
	} else {
		w.time("deadlineUtc", b.Deadline)
	}
	w.string("capabilityId", b.CapabilityID)
	w.string("operationName", b.OperationName)
	w.string("operationVersion", b.OperationVersion)
	w.orNull("permissionsGrantId", b.PermissionsGrantID)
	w.string("payloadClass", string(b.PayloadClass))
	w.raw("payload", b.Payload)
	if b.Stream != nil {
		w.name("stream")
		w.out = b.Stream.append(w.out)
	}
	w.optional("diagnosticPolicy", string(b.DiagnosticPolicy))
	w.optional("retention", string(b.Retention))
	if len(b.Secrets) > 0 {
		w.name("secrets")
		inner := begin(w.out)
		for _, s := range b.Secrets {
			if inner.begun {
				inner.out = append(inner.out, ',')
			}
			inner.begun = true
			inner.out = append(appendQuoted(inner.out, s.Pointer), ':')
			inner.out = appendQuoted(inner.out, s.Value)
		}
		w.out = inner.end()
	}
	return w.end()
}

func (*Request) required() []string { return requestMembers }

var requestMembers = []string{"requestId", "operationId", "idempotencyKey", "attempt", "deadlineUtc", "capabilityId", "operationName",
	"operationVersion", "permissionsGrantId", "payloadClass", "payload"}

func (b *Request) member(d *decoder, name []byte) bool {
	switch string(name) {
	case "requestId":
		d.uuid(&b.RequestID)
	case "operationId":
		d.uuid(&b.OperationID)
	case "idempotencyKey":
		if !d.null() {
			d.string(&b.IdempotencyKey, 1, MaxIdempotencyKey)
		}
	case "attempt":
		d.integer(&b.Attempt, 1, MaxSafeInteger)
	case "deadlineUtc":
		if !d.null() {
			d.time(&b.Deadline)
		}
	case "capabilityId":
		d.token(&b.CapabilityID)
	case "operationName":
		d.token(&b.OperationName)
	case "operationVersion":
		d.operationVersion(&b.OperationVersion)
	case "permissionsGrantId":
		if !d.null() {
			d.string(&b.PermissionsGrantID, 1, 128)
		}
	case "payloadClass":
		oneOf(d, &b.PayloadClass, PayloadClasses)
	case "payload":
		d.raw(&b.Payload)
	case "stream":
		b.Stream = new(Stream)
		d.object(b.Stream)
	case "diagnosticPolicy":
		oneOf(d, &b.DiagnosticPolicy, DiagnosticPolicies)
	case "retention":
		oneOf(d, &b.Retention, Retentions)
	case "secrets":
		b.readSecrets(d)
	default:
		return false
	}
	return true
}

// readSecrets reads a map from pointers to values. Its faults name no member, for
// a sender might have exchanged the two.
func (b *Request) readSecrets(d *decoder) {
	if !d.at('{') {
		d.mismatch("must be an object")
		return
	}
	b.Secrets = []Secret{}
	for d.pos++; d.next('}'); {
		pointer := string(unquote(d.value()))
		d.colon()
		if !d.at('"') || pointer != "" && pointer[0] != '/' {
			d.mismatch("must map JSON Pointers to strings")
			return
		}
		b.Secrets = append(b.Secrets, Secret{Pointer: pointer, Value: string(unquote(d.value()))})
	}
}

func (s *Stream) append(dst []byte) []byte {
	w := begin(dst)
	if s.Request {
		w.bool("request", true)
	}
	if s.Response {
		w.bool("response", true)
	}
	if s.CreditItems.Set {
		w.integer("initialCreditItems", s.CreditItems.N)
	}
	if s.CreditBytes.Set {
		w.integer("initialCreditBytes", s.CreditBytes.N)
	}
	return w.end()
}

func (*Stream) required() []string { return nil }

func (s *Stream) member(d *decoder, name []byte) bool {
	switch string(name) {
	case "request":
		d.bool(&s.Request)
	case "response":
		d.bool(&s.Response)
	case "initialCreditItems":
		s.CreditItems.Set = true
		d.integer(&s.CreditItems.N, 0, MaxSafeInteger)
	case "initialCreditBytes":
		s.CreditBytes.Set = true
		d.integer(&s.CreditBytes.N, 0, MaxSafeInteger)
	default:
		return false
	}
	return true
}

// A Response is the good end of a request.
type Response struct {
	RequestID    UUID
	OperationID  UUID
	PayloadClass PayloadClass
	Payload      json.RawMessage // part of what was decoded; null after a response stream
	Receipt      *Receipt        // nil if there is none
}

// Type is TypeResponse.
func (*Response) Type() MessageType { return TypeResponse }

// AppendJSON implements Body.
func (b *Response) AppendJSON(dst []byte) []byte {
	w := begin(dst)
	w.uuid("requestId", b.RequestID)
	w.uuid("operationId", b.OperationID)
	w.string("payloadClass", string(b.PayloadClass))
	w.raw("payload", b.Payload)
	w.receipt(b.Receipt)
	return w.end()
}

func (*Response) required() []string { return responseMembers }

var responseMembers = []string{"requestId", "operationId", "payloadClass", "payload"}

func (b *Response) member(d *decoder, name []byte) bool {
	switch string(name) {
	case "requestId":
		d.uuid(&b.RequestID)
	case "operationId":
		d.uuid(&b.OperationID)
	case "payloadClass":
		oneOf(d, &b.PayloadClass, PayloadClasses)
	case "payload":
		d.raw(&b.Payload)
	case "receipt":
		b.Receipt = new(Receipt)
		d.object(b.Receipt)
	default:
		return false
	}
	return true
}

// A ProgressUpdate tells how far a request is.
type ProgressUpdate struct {
	RequestID        UUID
	OperationID      UUID
	Message          string
	PercentCompleted *float64 // nil if it is not known; 0 to 100
	Current, Total   *int64   // nil if they are not known
}

// Type is TypeProgress.
func (*ProgressUpdate) Type() MessageType { return TypeProgress }

// AppendJSON implements Body.
func (b *ProgressUpdate) AppendJSON(dst []byte) []byte {
	w := begin(dst)
	w.uuid("requestId", b.RequestID)
	w.uuid("operationId", b.OperationID)
	w.string("message", b.Message)
	if b.PercentCompleted != nil {
		w.name("percentCompleted")
		w.out = AppendNumber(w.out, *b.PercentCompleted)
	}
	if b.Current != nil {
		w.integer("current", *b.Current)
	}
	if b.Total != nil {
		w.integer("total", *b.Total)
	}
	return w.end()
}

func (*ProgressUpdate) required() []string { return progressMembers }

var progressMembers = []string{"requestId", "operationId", "message"}

func (b *ProgressUpdate) member(d *decoder, name []byte) bool {
	switch string(name) {
	case "requestId":
		d.uuid(&b.RequestID)
	case "operationId":
		d.uuid(&b.OperationID)
	case "message":
		d.string(&b.Message, 0, MaxMessage)
	case "percentCompleted":
		d.space()
		f, err := strconv.ParseFloat(string(d.value()), 64)
		if err != nil || f < 0 || f > 100 {
			d.mismatch("must be a number from 0 to 100")
			return true
		}
		b.PercentCompleted = &f
	case "current":
		b.Current = new(int64)
		d.integer(b.Current, 0, MaxSafeInteger)
	case "total":
		b.Total = new(int64)
		d.integer(b.Total, 0, MaxSafeInteger)
	default:
		return false
	}
	return true
}
