package wire

import "encoding/json"

// A StreamItem is one item of a stream.
type StreamItem struct {
	RequestID   UUID
	OperationID UUID
	Index       int64           // from 0, without gaps
	Payload     json.RawMessage // part of what was decoded
}

// Type is TypeStreamItem.
func (*StreamItem) Type() MessageType { return TypeStreamItem }

// AppendJSON implements Body.
func (b *StreamItem) AppendJSON(dst []byte) []byte {
	w := begin(dst)
	w.uuid("requestId", b.RequestID)
	w.uuid("operationId", b.OperationID)
	w.integer("index", b.Index)
	w.raw("payload", b.Payload)
	return w.end()
}

func (*StreamItem) required() []string { return streamItemMembers }

var streamItemMembers = []string{"requestId", "operationId", "index", "payload"}

func (b *StreamItem) member(d *decoder, name []byte) bool {
	switch string(name) {
	case "requestId":
		d.uuid(&b.RequestID)
	case "operationId":
		d.uuid(&b.OperationID)
	case "index":
		d.integer(&b.Index, 0, MaxSafeInteger)
	case "payload":
		d.raw(&b.Payload)
	default:
		return false
	}
	return true
}

// A StreamEnd ends a stream, not its request. Bytes are those of the items'
// frames, as credit counts them.
type StreamEnd struct {
	RequestID   UUID
	OperationID UUID
	ItemCount   int64
	ByteCount   int64
}

// Type is TypeStreamEnd.
func (*StreamEnd) Type() MessageType { return TypeStreamEnd }

// AppendJSON implements Body.
func (b *StreamEnd) AppendJSON(dst []byte) []byte {
	w := begin(dst)
	w.uuid("requestId", b.RequestID)
	w.uuid("operationId", b.OperationID)
	w.integer("itemCount", b.ItemCount)
	w.integer("byteCount", b.ByteCount)
	return w.end()
}

func (*StreamEnd) required() []string { return streamEndMembers }

var streamEndMembers = []string{"requestId", "operationId", "itemCount", "byteCount"}

func (b *StreamEnd) member(d *decoder, name []byte) bool {
	switch string(name) {
	case "requestId":
		d.uuid(&b.RequestID)
	case "operationId":
		d.uuid(&b.OperationID)
	case "itemCount":
		d.integer(&b.ItemCount, 0, MaxSafeInteger)
	case "byteCount":
		d.integer(&b.ByteCount, 0, MaxSafeInteger)
	default:
		return false
	}
	return true
}

// A Flow gives the sender of a stream more credit.
type Flow struct {
	RequestID   UUID
	CreditItems int64
	CreditBytes int64
}

// Type is TypeFlow.
func (*Flow) Type() MessageType { return TypeFlow }

// AppendJSON implements Body.
func (b *Flow) AppendJSON(dst []byte) []byte {
	w := begin(dst)
	w.uuid("requestId", b.RequestID)
	w.integer("creditItems", b.CreditItems)
	w.integer("creditBytes", b.CreditBytes)
	return w.end()
}

func (*Flow) required() []string { return flowMembers }

var flowMembers = []string{"requestId", "creditItems", "creditBytes"}

func (b *Flow) member(d *decoder, name []byte) bool {
	switch string(name) {
	case "requestId":
		d.uuid(&b.RequestID)
	case "creditItems":
		d.integer(&b.CreditItems, 0, MaxSafeInteger)
	case "creditBytes":
		d.integer(&b.CreditBytes, 0, MaxSafeInteger)
	default:
		return false
	}
	return true
}

// A CancelRequest asks that a request ends soon.
type CancelRequest struct {
	RequestID UUID
	Reason    string
}

// Type is TypeCancel.
func (*CancelRequest) Type() MessageType { return TypeCancel }

// AppendJSON implements Body.
func (b *CancelRequest) AppendJSON(dst []byte) []byte {
	w := begin(dst)
	w.uuid("requestId", b.RequestID)
	w.string("reason", b.Reason)
	return w.end()
}

func (*CancelRequest) required() []string { return cancelMembers }

var cancelMembers = []string{"requestId", "reason"}

func (b *CancelRequest) member(d *decoder, name []byte) bool {
	switch string(name) {
	case "requestId":
		d.uuid(&b.RequestID)
	case "reason":
		d.string(&b.Reason, 0, MaxMessage)
	default:
		return false
	}
	return true
}

// A CancelAck says that a cancel has been read, not that anything has ended.
type CancelAck struct{ RequestID UUID }

// Type is TypeCancelAck.
func (*CancelAck) Type() MessageType { return TypeCancelAck }

// AppendJSON implements Body.
func (b *CancelAck) AppendJSON(dst []byte) []byte {
	w := begin(dst)
	w.uuid("requestId", b.RequestID)
	return w.end()
}

func (*CancelAck) required() []string { return cancelAckMembers }

var cancelAckMembers = []string{"requestId"}

func (b *CancelAck) member(d *decoder, name []byte) bool {
	if string(name) != "requestId" {
		return false
	}
	d.uuid(&b.RequestID)
	return true
}

// Cancelled is the end of a request that stopped because it was asked to.
type Cancelled struct {
	RequestID   UUID
	OperationID UUID
	Receipt     *Receipt // nil if there is none
}

// Type is TypeCancelled.
func (*Cancelled) Type() MessageType { return TypeCancelled }

// AppendJSON implements Body.
func (b *Cancelled) AppendJSON(dst []byte) []byte {
	w := begin(dst)
	w.uuid("requestId", b.RequestID)
	w.uuid("operationId", b.OperationID)
	w.receipt(b.Receipt)
	return w.end()
}

func (*Cancelled) required() []string { return cancelledMembers }

var cancelledMembers = []string{"requestId", "operationId"}

func (b *Cancelled) member(d *decoder, name []byte) bool {
	switch string(name) {
	case "requestId":
		d.uuid(&b.RequestID)
	case "operationId":
		d.uuid(&b.OperationID)
	case "receipt":
		b.Receipt = new(Receipt)
		d.object(b.Receipt)
	default:
		return false
	}
	return true
}
