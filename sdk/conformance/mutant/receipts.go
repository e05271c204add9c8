package mutant

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A store keeps a record for each dedup tuple, and for each receipt without one,
// in the directory receipts of the state directory.
type store struct {
	p   *program
	m   *manifest
	dir string
}

// A record is one file of the store.
type record struct {
	Receipt receipt         `json:"receipt"`
	Result  json.RawMessage `json:"result,omitempty"` // of a completed operation
	Error   *recordError    `json:"error,omitempty"`  // of a failed one
}

type recordError struct {
	Code      string `json:"code"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
}

// A receipt has the members of the contract, §6, in their order.
type receipt struct {
	ReceiptSchemaVersion string  `json:"receiptSchemaVersion"`
	ReceiptID            string  `json:"receiptId"`
	PluginID             string  `json:"pluginId"`
	PublisherID          string  `json:"publisherId"`
	PackageVersion       string  `json:"packageVersion"`
	ManifestDigest       string  `json:"manifestDigest"`
	CapabilityID         string  `json:"capabilityId"`
	OperationName        string  `json:"operationName"`
	OperationVersion     string  `json:"operationVersion"`
	OperationID          string  `json:"operationId"`
	IdempotencyKey       *string `json:"idempotencyKey"`
	Attempt              int     `json:"attempt"`
	ExecutionState       string  `json:"executionState"`
	EffectState          string  `json:"effectState"`
	StartedAtUtc         string  `json:"startedAtUtc"`
	IssuedAtUtc          string  `json:"issuedAtUtc"`
	RequestDigest        string  `json:"requestDigest"`
	ResultDigest         *string `json:"resultDigest"`
	ItemCount            int64   `json:"itemCount"`
	ByteCount            int64   `json:"byteCount"`
	ErrorCode            *string `json:"errorCode"`
	ExpiresAtUtc         string  `json:"expiresAtUtc"`
}

func newStore(p *program, m *manifest) (*store, error) {
	st := &store{p, m, filepath.Join(p.state, "receipts")}
	return st, os.MkdirAll(st.dir, 0o700)
}

// A claim is a record whose operation runs, and the lock that says so.
type claim struct {
	st   *store
	path string
	rec  record
	lock *os.File

	streams bool // out
}

// name returns the path of a record without its ending; of names what it is for.
func (st *store) name(of map[string]string) string {
	return filepath.Join(st.dir, strings.TrimPrefix(canonicalDigest([]byte(text(of))), "sha256:"))
}

func requestDigest(p *program, o *op) string {
	m := map[string]any{"capabilityId": o.b.CapabilityID, "operationName": o.b.OperationName, "operationVersion": o.b.OperationVersion, "payload": parse(o.b.Payload)}
	if p.has("digests-the-attempt") {
		m["attempt"] = o.b.Attempt
	}
	if p.has("digests-the-bytes") {
		m["payload"] = string(o.b.Payload)
	}
	return canonicalDigest([]byte(text(m)))
}

// claim takes the operation's tuple, or returns the record to be replayed and why
// the operation must not run.
func (st *store) claim(o *op) (*record, *pluginError) {
	c := &claim{st: st, streams: o.o.Streaming.Response}
	key := o.b.IdempotencyKey
	if st.p.has("ignores-idempotency-keys") {
		key = nil
	}
	id := newUUID(st.p)
	c.path = st.name(map[string]string{"receiptId": id})
	if key != nil {
		tuple := map[string]string{"pluginId": st.m.Plugin.PluginID, "capabilityId": o.b.CapabilityID, "operationName": o.b.OperationName, "idempotencyKey": *key}
		if st.p.has("dedupes-across-operations") {
			tuple = map[string]string{"idempotencyKey": *key}
		}
		c.path = st.name(tuple)
	}
	var err error
	if c.lock, err = os.OpenFile(c.path+".lock", os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, &pluginError{"internal", "the store cannot be used", false}
	}
	held := tryLock(c.lock)
	old, known := st.read(c.path)
	for i := 0; !held && !known && i < 200; i++ { // its holder is about to write it
		time.Sleep(5 * time.Millisecond)
		old, known = st.read(c.path)
	}
	if until, err := time.Parse(time.RFC3339Nano, old.Receipt.ExpiresAtUtc); known && held && err == nil && until.Before(time.Now()) && !st.p.has("keeps-what-expired") {
		known = false
	}
	digest := requestDigest(st.p, o)
	switch {
	case known && old.Receipt.RequestDigest != digest && !st.p.has("ignores-request-digests"):
		c.lock.Close()
		return nil, &pluginError{"already_exists", "the key was used for another request", false}
	case !held:
		c.lock.Close()
		if st.p.has("waits-for-the-first") {
			time.Sleep(3 * time.Second)
		}
		return &old, &pluginError{"conflict", "an operation with this key is running", true}
	case known:
		if replay, why := st.again(c, old); replay != nil {
			c.lock.Close()
			return replay, why
		}
	}
	r := &c.rec.Receipt
	*r = receipt{
		ReceiptSchemaVersion: "urn:switchyard:receipt:1", ReceiptID: id, PluginID: st.m.Plugin.PluginID, PublisherID: st.m.Publisher.PublisherID,
		PackageVersion: st.m.PackageVersion, ManifestDigest: st.m.Provenance.ManifestDigest, CapabilityID: o.b.CapabilityID, OperationName: o.b.OperationName,
		OperationVersion: o.b.OperationVersion, OperationID: o.b.OperationID, IdempotencyKey: o.b.IdempotencyKey, Attempt: o.b.Attempt,
		ExecutionState: "in_progress", EffectState: "unknown", StartedAtUtc: o.started, IssuedAtUtc: now(), RequestDigest: digest, ExpiresAtUtc: st.expiry(o.b.Retention),
	}
	o.claim = c
	if !st.p.has("writes-no-claim") {
		st.write(c.path, c.rec)
	}
	return nil, nil
}

func (st *store) expiry(retention string) string {
	days := map[string]int{"none": 7, "ephemeral": 1, "audit": 365}[retention]
	if days == 0 || st.p.has("keeps-all-alike") {
		days = 30
	}
	return time.Now().UTC().AddDate(0, 0, days).Format("2006-01-02T15:04:05.000000Z")
}

// again decides on a tuple whose operation has run; nil means that it may run.
func (st *store) again(c *claim, old record) (*record, *pluginError) {
	r := &old.Receipt
	if r.ExecutionState == "in_progress" {
		if st.p.has("reruns-abandoned") {
			return nil, nil
		}
		r.ExecutionState, r.EffectState = "abandoned", "unknown"
		st.write(c.path, old)
	}
	switch {
	case r.ExecutionState == "abandoned", (r.EffectState == "unknown" || r.EffectState == "partial") && !st.p.has("replays-unknown-effects"):
		if st.p.has("reruns-unknown") && r.ExecutionState != "abandoned" {
			return nil, nil
		}
		return &old, &pluginError{"failed_precondition", "an earlier attempt may have had an effect", false}
	case r.ExecutionState == "completed" && old.Result == nil && !c.streams:
		return &old, &pluginError{"failed_precondition", "the operation has completed and its result was not kept", false}
	case r.ExecutionState == "completed":
		return &old, nil
	case r.ExecutionState == "failed" && old.Error == nil:
		return &old, &pluginError{"failed_precondition", "how the operation failed was not kept", false}
	case r.ExecutionState == "failed" && r.EffectState == "none" && old.Error.Retryable && !st.p.has("never-retries"):
		return nil, nil
	case r.ExecutionState == "failed" && st.p.has("reruns-failed"):
		return nil, nil
	case r.ExecutionState == "failed":
		return &old, &pluginError{old.Error.Code, old.Error.Message, old.Error.Retryable}
	case r.EffectState == "none" || st.p.has("reruns-cancelled"): // cancelled
		return nil, nil
	}
	return &old, &pluginError{"failed_precondition", "an earlier attempt was cancelled after its effect", false}
}

// replay answers from a record; err is nil where the record's own outcome is the
// answer.
func (o *op) replay(rec *record, err *pluginError) {
	s := o.s
	s.mu.Lock()
	delete(s.ops, o.b.RequestID)
	s.past[o.b.RequestID] = o.trace
	s.mu.Unlock()
	defer o.cancel(nil)
	with := ""
	if rec != nil && rec.Receipt.ReceiptID != "" && s.enabled["receipt.v1"] {
		r := rec.Receipt
		if s.p.has("renews-replayed-receipts") {
			r.OperationID, r.IssuedAtUtc = o.b.OperationID, now()
		}
		with = `,"receipt":` + text(r)
	}
	switch {
	case err != nil && err.code == "conflict":
		if !s.p.has("names-no-existing-operation") {
			with = `,"existingOperationId":` + quote(rec.Receipt.OperationID)
		} else {
			with = ""
		}
		s.fail(o, err, "caller", with)
	case err != nil:
		s.fail(o, err, blameOf(err.code), with)
	default:
		result := string(rec.Result)
		if o.o.Streaming.Response {
			result = "null"
			o.streamEnd()
		}
		o.send("response", o.messageID, fmt.Sprintf(`{"requestId":%s,"operationId":%s,"payloadClass":%s,"payload":%s%s}`, quote(o.b.RequestID), quote(o.b.OperationID), quote(o.b.PayloadClass), result, with))
	}
}

// finish writes the record's last state before the answer and returns the
// receipt.
func (c *claim) finish(o *op, out outcome) string {
	p := c.st.p
	r := &c.rec.Receipt
	r.EffectState, r.IssuedAtUtc = cmp.Or(o.effect, "none"), now()
	if p.has("claims-no-effect") {
		r.EffectState = "none"
	}
	o.mu.Lock()
	r.ItemCount, r.ByteCount = o.sentItems, o.sentBytes
	if !o.o.Streaming.Response {
		r.ItemCount, r.ByteCount = o.gotItems, o.gotBytes
	}
	o.mu.Unlock()
	switch out.kind {
	case "response":
		r.ExecutionState = "completed"
		if !o.o.Streaming.Response {
			sum := canonicalDigest([]byte(out.result))
			if p.has("digests-the-result-wrongly") {
				sum = canonicalDigest([]byte(`{"result":` + out.result + `}`))
			}
			r.ResultDigest = &sum
			if o.b.Retention != "none" || p.has("ignores-retention") {
				c.rec.Result = json.RawMessage(out.result)
			}
		}
	case "cancelled":
		r.ExecutionState = "cancelled"
	default:
		r.ExecutionState = "failed"
		if o.effect == "" && out.code == "internal" && !p.has("claims-no-effect") {
			r.EffectState = "unknown" // the handler had no say
		}
		r.ErrorCode, c.rec.Error = &out.code, &recordError{out.code, out.message, out.retryable}
	}
	if p.has("keeps-secrets") {
		c.rec.Error = &recordError{"internal", text(o.b.Secrets), false}
	}
	receipt := text(*r)
	if !p.has("stores-nothing") {
		c.st.write(c.path, c.rec)
	}
	c.lock.Close()
	return receipt
}

func (st *store) read(path string) (record, bool) {
	var r record
	text, err := os.ReadFile(path + ".json")
	return r, err == nil && json.Unmarshal(text, &r) == nil
}

// write replaces a record in one step.
func (st *store) write(path string, r record) {
	err := func() error {
		f, err := os.CreateTemp(st.dir, "*.tmp")
		if err != nil {
			return err
		}
		_, err = f.WriteString(text(r))
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			return err
		}
		return os.Rename(f.Name(), path+".json")
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutant: the store cannot be written:", err)
		os.Exit(1)
	}
}

func (s *session) receiptQuery(e *envelope) error {
	var b struct{ ReceiptID, PluginID, CapabilityID, OperationName, IdempotencyKey string }
	if p := s.body(e, &b); p != nil {
		return s.complain(e, p.code, p.Error())
	}
	tuple := b.PluginID != "" && b.CapabilityID != "" && b.OperationName != "" && b.IdempotencyKey != ""
	any := b.PluginID+b.CapabilityID+b.OperationName+b.IdempotencyKey != ""
	if (b.ReceiptID != "") == tuple || b.ReceiptID != "" && any {
		return s.complain(e, "schema.mismatch", "want receiptId, or the tuple")
	}
	files, err := filepath.Glob(filepath.Join(s.store.dir, "*.json"))
	if err != nil {
		return s.complain(e, "internal", "the store cannot be read")
	}
	for _, file := range files {
		file = strings.TrimSuffix(file, ".json")
		rec, ok := s.store.read(file)
		r := rec.Receipt
		key := ""
		if r.IdempotencyKey != nil {
			key = *r.IdempotencyKey
		}
		if !ok || !(tuple && r.PluginID == b.PluginID && r.CapabilityID == b.CapabilityID && r.OperationName == b.OperationName && key == b.IdempotencyKey || b.ReceiptID != "" && r.ReceiptID == b.ReceiptID) {
			continue
		}
		if r.ExecutionState == "in_progress" && !s.p.has("believes-the-dead") {
			if lock, err := os.OpenFile(file+".lock", os.O_CREATE|os.O_RDWR, 0o600); err == nil {
				if tryLock(lock) {
					r.ExecutionState, r.EffectState = "abandoned", "unknown"
					rec.Receipt = r
					s.store.write(file, rec)
				}
				lock.Close()
			}
		}
		s.send("receipt", e.id, text(r))
		return nil
	}
	return s.complain(e, "not_found", "no such receipt")
}
