package wire

import "encoding/json"

// An Error is the bad end of a request, or of the connection if it has no
// requestId. Its message and details hold nothing private.
type Error struct {
	Code                Code
	Message             string
	Retryable           bool
	BlameDomain         Blame
	Severity            Severity
	RequestID           NullUUID
	OperationID         NullUUID
	Details             json.RawMessage // an object; nil if there are none
	Receipt             *Receipt
	ExistingOperationID NullUUID
	SupportedProtocol   *VersionRange
	RecommendedVersion  *Version
}

func (b *Error) Error() string { return string(b.Code) + ": " + b.Message }

// Type is TypeError.
func (*Error) Type() MessageType { return TypeError }

// AppendJSON implements Body.
func (b *Error) AppendJSON(dst []byte) []byte {
	w := begin(dst)
	w.string("code", string(b.Code))
	w.string("message", b.Message)
	w.bool("retryable", b.Retryable)
	w.string("blameDomain", string(b.BlameDomain))
	w.string("severity", string(b.Severity))
	w.nullUUID("requestId", b.RequestID)
	w.nullUUID("operationId", b.OperationID)
	if len(b.Details) > 0 {
		w.raw("details", b.Details)
	}
	w.receipt(b.Receipt)
	if b.ExistingOperationID.Set {
		w.nullUUID("existingOperationId", b.ExistingOperationID)
	}
	if b.SupportedProtocol != nil {
		w.name("supportedProtocol")
		w.out = b.SupportedProtocol.append(w.out)
	}
	if b.RecommendedVersion != nil {
		w.version("recommendedProtocolVersion", *b.RecommendedVersion)
	}
	return w.end()
}

func (*Error) required() []string { return errorMembers }

var errorMembers = []string{"code", "message", "retryable", "blameDomain", "severity", "requestId", "operationId"}

func (b *Error) member(d *decoder, name []byte) bool {
	switch string(name) {
	case "code":
		d.code(&b.Code)
	case "message":
		d.string(&b.Message, 0, MaxMessage)
	case "retryable":
		d.bool(&b.Retryable)
	case "blameDomain":
		oneOf(d, &b.BlameDomain, blames)
	case "severity":
		oneOf(d, &b.Severity, severities)
	case "requestId":
		d.nullUUID(&b.RequestID)
	case "operationId":
		d.nullUUID(&b.OperationID)
	case "details":
		d.rawObject(&b.Details)
	case "receipt":
		b.Receipt = new(Receipt)
		d.object(b.Receipt)
	case "existingOperationId":
		d.uuid(&b.ExistingOperationID.UUID)
		b.ExistingOperationID.Set = d.fault == nil
	case "supportedProtocol":
		b.SupportedProtocol = new(VersionRange)
		d.object(b.SupportedProtocol)
	case "recommendedProtocolVersion":
		b.RecommendedVersion = new(Version)
		d.version(b.RecommendedVersion)
	default:
		return false
	}
	return true
}
