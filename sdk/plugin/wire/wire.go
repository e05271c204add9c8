// Package wire is what goes over a session's connection, for both of its ends:
// frames, envelopes and bodies, error codes, features and their negotiation,
// identifiers, credits and the state tables (docs/protocol-session.md).
//
// It reads strictly and repairs nothing. It holds no connection, starts no
// goroutine and knows no handler; sdk/plugin and the host are built on it. It
// links the standard library only.
package wire

// Versions of the session protocol that this package speaks.
var (
	MinVersion = Version{1, 0}
	MaxVersion = Version{1, 2}
)

// Bounds of the protocol.
const (
	DefaultMaxFrame   = 8 << 20   // bytes of a frame's JSON before negotiation
	MinMaxFrame       = 1 << 10   // the least that a side may offer as its limit
	MaxMaxFrame       = 1<<31 - 1 // the most, for a length is not negative
	MaxExtensions     = 16 << 10  // bytes of the member extensions
	MaxSafeInteger    = 1<<53 - 1 // of every number
	MaxMessage        = 4096      // bytes of a text for people
	MaxIdempotencyKey = 256       // bytes
	ProgressPerSecond = 20        // frames of one request
)

// A MessageType names what an envelope holds, and the member that holds it.
type MessageType string

// The message types.
const (
	TypeHello             MessageType = "hello"
	TypeHelloAck          MessageType = "helloAck"
	TypeInit              MessageType = "init"
	TypeInitAck           MessageType = "initAck"
	TypeSettingsValidate  MessageType = "settingsValidate"
	TypeSettingsValidated MessageType = "settingsValidated"
	TypeRequest           MessageType = "request"
	TypeResponse          MessageType = "response"
	TypeError             MessageType = "error"
	TypeProgress          MessageType = "progress"
	TypeStreamItem        MessageType = "streamItem"
	TypeStreamEnd         MessageType = "streamEnd"
	TypeFlow              MessageType = "flow"
	TypeCancel            MessageType = "cancel"
	TypeCancelAck         MessageType = "cancelAck"
	TypeCancelled         MessageType = "cancelled"
	TypeHealthCheck       MessageType = "healthCheck"
	TypeHealth            MessageType = "health"
	TypeHeartbeat         MessageType = "heartbeat"
	TypeHeartbeatAck      MessageType = "heartbeatAck"
	TypeReceiptQuery      MessageType = "receiptQuery"
	TypeReceipt           MessageType = "receipt"
	TypeGoAway            MessageType = "goAway"
)

// A Side is one end of a connection.
type Side string

// The two sides.
const (
	Host   Side = "host"
	Plugin Side = "plugin"
)

// A Message describes a message type: who may send it, and the feature without
// which nobody may.
type Message struct {
	Type    MessageType
	From    []Side
	Feature Feature // "" if it belongs to every version
	Reply   bool    // it answers one frame, which its causationId names
}

// Messages lists every message type in the order of the protocol's page.
var Messages = []Message{
	{Type: TypeHello, From: []Side{Host}},
	{Type: TypeHelloAck, From: []Side{Plugin}, Reply: true},
	{Type: TypeInit, From: []Side{Host}},
	{Type: TypeInitAck, From: []Side{Plugin}, Reply: true},
	{Type: TypeSettingsValidate, From: []Side{Host}, Feature: SettingsValidate},
	{Type: TypeSettingsValidated, From: []Side{Plugin}, Feature: SettingsValidate, Reply: true},
	{Type: TypeRequest, From: []Side{Host}},
	{Type: TypeResponse, From: []Side{Plugin}, Reply: true},
	{Type: TypeError, From: []Side{Host, Plugin}},
	{Type: TypeProgress, From: []Side{Plugin}, Feature: Progress},
	{Type: TypeStreamItem, From: []Side{Host, Plugin}, Feature: FlowCredit},
	{Type: TypeStreamEnd, From: []Side{Host, Plugin}, Feature: FlowCredit},
	{Type: TypeFlow, From: []Side{Host, Plugin}, Feature: FlowCredit},
	{Type: TypeCancel, From: []Side{Host}, Feature: Cancel},
	{Type: TypeCancelAck, From: []Side{Plugin}, Feature: Cancel, Reply: true},
	{Type: TypeCancelled, From: []Side{Plugin}, Feature: Cancel, Reply: true},
	{Type: TypeHealthCheck, From: []Side{Host}},
	{Type: TypeHealth, From: []Side{Plugin}, Reply: true},
	{Type: TypeHeartbeat, From: []Side{Host, Plugin}, Feature: Heartbeat},
	{Type: TypeHeartbeatAck, From: []Side{Host, Plugin}, Feature: Heartbeat, Reply: true},
	{Type: TypeReceiptQuery, From: []Side{Host}, Feature: Receipts},
	{Type: TypeReceipt, From: []Side{Plugin}, Feature: Receipts, Reply: true},
	{Type: TypeGoAway, From: []Side{Host, Plugin}},
}

// Describe returns what Messages says of t.
func (t MessageType) Describe() (Message, bool) {
	for _, m := range Messages {
		if m.Type == t {
			return m, true
		}
	}
	return Message{}, false
}

// MaySend reports whether t comes from side.
func (m Message) MaySend(side Side) bool {
	for _, s := range m.From {
		if s == side {
			return true
		}
	}
	return false
}

// typeNamed returns the type that name spells, without allocating, or "".
func typeNamed(name []byte) MessageType {
	switch string(name) {
	case "hello":
		return TypeHello
	case "helloAck":
		return TypeHelloAck
	case "init":
		return TypeInit
	case "initAck":
		return TypeInitAck
	case "settingsValidate":
		return TypeSettingsValidate
	case "settingsValidated":
		return TypeSettingsValidated
	case "request":
		return TypeRequest
	case "response":
		return TypeResponse
	case "error":
		return TypeError
	case "progress":
		return TypeProgress
	case "streamItem":
		return TypeStreamItem
	case "streamEnd":
		return TypeStreamEnd
	case "flow":
		return TypeFlow
	case "cancel":
		return TypeCancel
	case "cancelAck":
		return TypeCancelAck
	case "cancelled":
		return TypeCancelled
	case "healthCheck":
		return TypeHealthCheck
	case "health":
		return TypeHealth
	case "heartbeat":
		return TypeHeartbeat
	case "heartbeatAck":
		return TypeHeartbeatAck
	case "receiptQuery":
		return TypeReceiptQuery
	case "receipt":
		return TypeReceipt
	case "goAway":
		return TypeGoAway
	}
	return ""
}

// NewBody returns an empty body for t, or nil if t is none of the types.
func NewBody(t MessageType) Body {
	switch t {
	case TypeHello:
		return new(Hello)
	case TypeHelloAck:
		return new(HelloAck)
	case TypeInit:
		return new(Init)
	case TypeInitAck:
		return new(InitAck)
	case TypeSettingsValidate:
		return new(SettingsToValidate)
	case TypeSettingsValidated:
		return new(SettingsValidated)
	case TypeRequest:
		return new(Request)
	case TypeResponse:
		return new(Response)
	case TypeError:
		return new(Error)
	case TypeProgress:
		return new(ProgressUpdate)
	case TypeStreamItem:
		return new(StreamItem)
	case TypeStreamEnd:
		return new(StreamEnd)
	case TypeFlow:
		return new(Flow)
	case TypeCancel:
		return new(CancelRequest)
	case TypeCancelAck:
		return new(CancelAck)
	case TypeCancelled:
		return new(Cancelled)
	case TypeHealthCheck:
		return new(HealthCheck)
	case TypeHealth:
		return new(HealthReport)
	case TypeHeartbeat:
		return new(Beat)
	case TypeHeartbeatAck:
		return new(BeatAck)
	case TypeReceiptQuery:
		return new(ReceiptQuery)
	case TypeReceipt:
		return new(Receipt)
	case TypeGoAway:
		return new(GoAway)
	}
	return nil
}
