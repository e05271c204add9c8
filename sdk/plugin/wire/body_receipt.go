package wire

import "time"

// ReceiptSchemaVersion is the version of Receipt.
const ReceiptSchemaVersion = "urn:switchyard:receipt:1"

// A Receipt is the durable record of one operation. It holds digests, counts and
// sizes, never data.
type Receipt struct {
	ReceiptID        UUID
	PluginID         string
	PublisherID      string
	PackageVersion   string
	ManifestDigest   string
	CapabilityID     string
	OperationName    string
	OperationVersion string
	OperationID      UUID
	IdempotencyKey   string // "" is null
	Attempt          int64
	ExecutionState   ExecutionState
	EffectState      EffectState
	StartedAt        time.Time
	IssuedAt         time.Time
	RequestDigest    string
	ResultDigest     string // "" is null
	ItemCount        int64
	ByteCount        int64
	ErrorCode        Code // "" is null
	ExpiresAt        time.Time
}

// Type is TypeReceipt.
func (*Receipt) Type() MessageType { return TypeReceipt }

// AppendJSON implements Body.
func (r *Receipt) AppendJSON(dst []byte) []byte {
	w := begin(dst)
	w.string("receiptSchemaVersion", ReceiptSchemaVersion)
	w.uuid("receiptId", r.ReceiptID)
	w.string("pluginId", r.PluginID)
	w.string("publisherId", r.PublisherID)
	w.string("packageVersion", r.PackageVersion)
	w.string("manifestDigest", r.ManifestDigest)
	w.string("capabilityId", r.CapabilityID)
	w.string("operationName", r.OperationName)
	w.string("operationVersion", r.OperationVersion)
	w.uuid("operationId", r.OperationID)
	w.orNull("idempotencyKey", r.IdempotencyKey)
	w.integer("attempt", r.Attempt)
	w.string("executionState", string(r.ExecutionState))
	w.string("effectState", string(r.EffectState))
	w.time("startedAtUtc", r.StartedAt)
	w.time("issuedAtUtc", r.IssuedAt)
	w.string("requestDigest", r.RequestDigest)
	w.orNull("resultDigest", r.ResultDigest)
	w.integer("itemCount", r.ItemCount)
	w.integer("byteCount", r.ByteCount)
	w.orNull("errorCode", string(r.ErrorCode))
	w.time("expiresAtUtc", r.ExpiresAt)
	return w.end()
}

func (w *writer) receipt(r *Receipt) {
	if r != nil {
		w.name("receipt")
		w.out = r.AppendJSON(w.out)
	}
}

func (*Receipt) required() []string { return receiptMembers }

var receiptMembers = []string{"receiptSchemaVersion", "receiptId", "pluginId", "publisherId", "packageVersion", "manifestDigest", "capabilityId",
	"operationName", "operationVersion", "operationId", "idempotencyKey", "attempt", "executionState", "effectState", "startedAtUtc", "issuedAtUtc",
	"requestDigest", "resultDigest", "itemCount", "byteCount", "errorCode", "expiresAtUtc"}

var receiptVersions = []string{ReceiptSchemaVersion}

func (r *Receipt) member(d *decoder, name []byte) bool {
	switch string(name) {
	case "receiptSchemaVersion":
		var version string
		oneOf(d, &version, receiptVersions)
	case "receiptId":
		d.uuid(&r.ReceiptID)
	case "pluginId":
		d.string(&r.PluginID, 1, 256)
	case "publisherId":
		d.string(&r.PublisherID, 1, 256)
	case "packageVersion":
		d.string(&r.PackageVersion, 1, 256)
	case "manifestDigest":
		d.digest(&r.ManifestDigest)
	case "capabilityId":
		d.token(&r.CapabilityID)
	case "operationName":
		d.token(&r.OperationName)
	case "operationVersion":
		d.operationVersion(&r.OperationVersion)
	case "operationId":
		d.uuid(&r.OperationID)
	case "idempotencyKey":
		if !d.null() {
			d.string(&r.IdempotencyKey, 1, MaxIdempotencyKey)
		}
	case "attempt":
		d.integer(&r.Attempt, 1, MaxSafeInteger)
	case "executionState":
		oneOf(d, &r.ExecutionState, ExecutionStates)
	case "effectState":
		oneOf(d, &r.EffectState, EffectStates)
	case "startedAtUtc":
		d.time(&r.StartedAt)
	case "issuedAtUtc":
		d.time(&r.IssuedAt)
	case "requestDigest":
		d.digest(&r.RequestDigest)
	case "resultDigest":
		if !d.null() {
			d.digest(&r.ResultDigest)
		}
	case "itemCount":
		d.integer(&r.ItemCount, 0, MaxSafeInteger)
	case "byteCount":
		d.integer(&r.ByteCount, 0, MaxSafeInteger)
	case "errorCode":
		if !d.null() {
			d.code(&r.ErrorCode)
		}
	case "expiresAtUtc":
		d.time(&r.ExpiresAt)
	default:
		return false
	}
	return true
}

// A ReceiptQuery asks for one receipt, by its id or by what it deduplicates.
type ReceiptQuery struct {
	ReceiptID NullUUID // if it is set, the rest is empty

	PluginID       string
	CapabilityID   string
	OperationName  string
	IdempotencyKey string
}

// Type is TypeReceiptQuery.
func (*ReceiptQuery) Type() MessageType { return TypeReceiptQuery }

// AppendJSON implements Body.
func (q *ReceiptQuery) AppendJSON(dst []byte) []byte {
	w := begin(dst)
	if q.ReceiptID.Set {
		w.nullUUID("receiptId", q.ReceiptID)
		return w.end()
	}
	w.string("pluginId", q.PluginID)
	w.string("capabilityId", q.CapabilityID)
	w.string("operationName", q.OperationName)
	w.string("idempotencyKey", q.IdempotencyKey)
	return w.end()
}

func (*ReceiptQuery) required() []string { return nil }

func (q *ReceiptQuery) member(d *decoder, name []byte) bool {
	switch string(name) {
	case "receiptId":
		d.uuid(&q.ReceiptID.UUID)
		q.ReceiptID.Set = d.fault == nil
	case "pluginId":
		d.string(&q.PluginID, 1, 256)
	case "capabilityId":
		d.token(&q.CapabilityID)
	case "operationName":
		d.token(&q.OperationName)
	case "idempotencyKey":
		d.string(&q.IdempotencyKey, 1, MaxIdempotencyKey)
	default:
		return false
	}
	return true
}

// check holds the two forms apart after all members are read.
func (q *ReceiptQuery) check(d *decoder) {
	byTuple := q.PluginID != "" || q.CapabilityID != "" || q.OperationName != "" || q.IdempotencyKey != ""
	switch {
	case q.ReceiptID.Set && byTuple:
		d.mismatch("must have receiptId alone, or the four members of the tuple")
	case q.ReceiptID.Set:
	case q.PluginID == "" || q.CapabilityID == "" || q.OperationName == "" || q.IdempotencyKey == "":
		d.mismatch("must have receiptId, or pluginId, capabilityId, operationName and idempotencyKey")
	}
}
