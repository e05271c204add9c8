//go:build unix

// Package sessiontest is a session plugin that behaves, or misbehaves, as it is told, and
// its package. Tests re-execute their own binary as it. It is imported by tests only, and
// is made of package wire alone, so that nothing of the host's judges itself.
package sessiontest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// Flag is the first argument of a process that is to be the plugin; the second is the
// directory that it is controlled from and leaves traces in.
const Flag = "-session-plugin"

// Main makes this process the plugin, if its arguments say so. The file "control" of its
// directory holds words: impostor, banner, unhealthy, stubborn. Its operations:
//
//	test.ops/read   a mere read: answers with its payload
//	test.ops/count  sends {"n":1} to {"n":n}
//	test.ops/sum    answers with the sum of the items that it is sent
//	test.ops/write  appends its "line" to effects, then by "then": answer, fail, crash,
//	                exit, malformed, tell (its secrets, wherever it can), or hold (until it is cancelled; it leaves "held"); it
//	                keeps receipts by key
func Main() {
	if len(os.Args) < 3 || os.Args[1] != Flag {
		return
	}
	p := &sessionPlugin{dir: os.Args[2], store: os.Getenv("SWITCHYARD_PLUGIN_STATE"), held: map[wire.UUID]heldRequest{}, sums: map[wire.UUID]*sum{}}
	p.control, _ = os.ReadFile(filepath.Join(p.dir, "control")) // none: it behaves
	p.in, p.out = os.Stdin, os.Stdout
	if path := os.Getenv("SWITCHYARD_PLUGIN_SOCKET"); path != "" {
		os.WriteFile(filepath.Join(p.dir, "socket"), []byte(path), 0o600)
		fmt.Println("this is no frame: the frames go over the socket")
		conn, err := net.Dial("unix", path)
		if err != nil {
			panic(err)
		}
		f, err := conn.(*net.UnixConn).File()
		if err != nil {
			panic(err)
		}
		p.in, p.out = f, f
	}
	os.Exit(p.serve())
}

type heldRequest struct {
	r     wire.Request
	cause wire.UUID
}

type sessionPlugin struct {
	dir, store string
	control    []byte
	in, out    *os.File
	sequence   uint64
	manifest   struct {
		Plugin       struct{ PluginID string }
		Publisher    struct{ PublisherID string }
		Version      string `json:"packageVersion"`
		Provenance   struct{ ManifestDigest string }
		Protocol     struct{ Features []wire.Feature }
		Capabilities []struct {
			ID, Version string
			Operations  []struct{ Name, OperationVersion string }
		}
	}
	held map[wire.UUID]heldRequest
	sums map[wire.UUID]*sum
}

// A sum is a request stream that is being added up.
type sum struct {
	heldRequest
	total, items int64
}

func (p *sessionPlugin) told(word string) bool { return strings.Contains(string(p.control), word) }

func (p *sessionPlugin) send(body wire.Body, cause wire.NullUUID) {
	p.sequence++
	e := wire.Envelope{Version: wire.MaxVersion, MessageID: wire.NewUUID(), Sequence: p.sequence, Timestamp: time.Now(), CausationID: cause}
	if err := wire.WriteFrame(p.out, wire.AppendMessage(nil, &e, body), wire.DefaultMaxFrame); err != nil {
		os.Exit(3)
	}
}

func (p *sessionPlugin) serve() int {
	raw, err := os.ReadFile("plugin.json")
	if err == nil {
		err = json.Unmarshal(raw, &p.manifest)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if p.told("banner") {
		fmt.Println("Welcome to the plugin!")
	}
	fmt.Fprintln(os.Stderr, "serving, password=hunter2secret")
	frames := wire.NewFrameReader(p.in)
	for {
		frame, err := frames.Next(nil)
		if err != nil {
			return 0
		}
		var e wire.Envelope
		if err := wire.Scan(frame, &e); err != nil {
			return 1
		}
		p.answer(&e)
	}
}

func (p *sessionPlugin) answer(e *wire.Envelope) {
	cause := wire.Some(e.MessageID)
	switch e.Type {
	case wire.TypeHello:
		digest := p.manifest.Provenance.ManifestDigest
		if p.told("impostor") {
			digest = "sha256:" + strings.Repeat("0", 64)
		}
		p.send(&wire.HelloAck{ProtocolVersion: wire.MaxVersion, EnabledFeatures: p.manifest.Protocol.Features, Requires: []wire.Feature{wire.FlowCredit},
			Codec: wire.CodecJSON, MaxFrameBytes: wire.DefaultMaxFrame, ManifestDigest: digest,
			Plugin: wire.Identity{PluginID: p.manifest.Plugin.PluginID, PublisherID: p.manifest.Publisher.PublisherID, PackageVersion: p.manifest.Version}, Deprecations: []wire.Deprecation{}}, cause)
	case wire.TypeInit:
		os.WriteFile(filepath.Join(p.dir, "init"), e.Body, 0o600)
		ack := &wire.InitAck{Status: wire.InitReady}
		for _, c := range p.manifest.Capabilities {
			one := wire.Capability{ID: c.ID, Version: c.Version}
			for _, o := range c.Operations {
				one.Operations = append(one.Operations, wire.OperationVersion{Name: o.Name, OperationVersion: o.OperationVersion})
			}
			ack.Capabilities = append(ack.Capabilities, one)
		}
		p.send(ack, cause)
	case wire.TypeHealthCheck:
		status := wire.Healthy
		if p.told("unhealthy") {
			status = wire.Unhealthy
		}
		p.send(&wire.HealthReport{Status: status, UpdatedAt: time.Now()}, cause)
	case wire.TypeReceiptQuery:
		var q wire.ReceiptQuery
		if wire.Decode(e.Body, &q) == nil {
			if raw, err := os.ReadFile(p.place(q.CapabilityID+"/"+q.OperationName, q.IdempotencyKey)); err == nil {
				var r wire.Receipt
				if wire.Decode(raw, &r) == nil {
					p.send(&r, cause)
					return
				}
			}
		}
		p.send(&wire.Error{Code: wire.CodeNotFound, Message: "no such receipt", BlameDomain: wire.BlameCaller, Severity: wire.SeverityError}, cause)
	case wire.TypeRequest:
		var r wire.Request
		if err := wire.Decode(e.Body, &r); err != nil {
			os.Exit(4)
		}
		p.perform(r, e.MessageID)
	case wire.TypeStreamItem:
		var i wire.StreamItem
		var value struct{ N int64 }
		if wire.Decode(e.Body, &i) != nil || json.Unmarshal(i.Payload, &value) != nil || p.sums[i.RequestID] == nil {
			os.Exit(4)
		}
		p.sums[i.RequestID].total += value.N
		p.sums[i.RequestID].items++
		p.send(&wire.Flow{RequestID: i.RequestID, CreditItems: 1, CreditBytes: 64 << 10}, wire.NullUUID{})
	case wire.TypeStreamEnd:
		var end wire.StreamEnd
		if wire.Decode(e.Body, &end) != nil || p.sums[end.RequestID] == nil || p.sums[end.RequestID].items != end.ItemCount {
			os.Exit(4)
		}
		s := p.sums[end.RequestID]
		p.send(&wire.Response{RequestID: s.r.RequestID, OperationID: s.r.OperationID, PayloadClass: s.r.PayloadClass, Payload: json.RawMessage(fmt.Sprintf(`{"n":%d}`, s.total)),
			Receipt: p.receipt(s.r, wire.ExecutionCompleted, wire.EffectNone, "")}, wire.Some(s.cause))
	case wire.TypeCancel:
		var c wire.CancelRequest
		if err := wire.Decode(e.Body, &c); err != nil {
			os.Exit(4)
		}
		p.send(&wire.CancelAck{RequestID: c.RequestID}, cause)
		if s := p.sums[c.RequestID]; s != nil {
			delete(p.sums, c.RequestID)
			p.send(&wire.Cancelled{RequestID: s.r.RequestID, OperationID: s.r.OperationID, Receipt: p.receipt(s.r, wire.ExecutionCancelled, wire.EffectNone, "")}, wire.Some(s.cause))
		}
		if h, ok := p.held[c.RequestID]; ok && !p.told("stubborn") {
			delete(p.held, c.RequestID)
			p.send(&wire.Cancelled{RequestID: h.r.RequestID, OperationID: h.r.OperationID, Receipt: p.receipt(h.r, wire.ExecutionCancelled, wire.EffectCommitted, "")}, wire.Some(h.cause))
		}
	}
}

func (p *sessionPlugin) perform(r wire.Request, message wire.UUID) {
	cause := wire.Some(message)
	respond := func(payload json.RawMessage, receipt *wire.Receipt) {
		p.send(&wire.Response{RequestID: r.RequestID, OperationID: r.OperationID, PayloadClass: r.PayloadClass, Payload: payload, Receipt: receipt}, cause)
	}
	switch r.OperationName {
	case "read":
		respond(r.Payload, nil)
		return
	case "sum":
		p.sums[r.RequestID] = &sum{heldRequest: heldRequest{r, message}}
		p.send(&wire.Flow{RequestID: r.RequestID, CreditItems: 2, CreditBytes: 64 << 10}, wire.NullUUID{})
		return
	case "count":
		var ask struct{ N int64 }
		json.Unmarshal(r.Payload, &ask)
		var bytes int64
		for i := range ask.N {
			item := &wire.StreamItem{RequestID: r.RequestID, OperationID: r.OperationID, Index: i, Payload: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i+1))}
			e := wire.Envelope{Version: wire.MaxVersion, MessageID: wire.NewUUID(), Sequence: p.sequence + 1, Timestamp: time.Unix(1, 0)}
			bytes += int64(len(wire.AppendMessage(nil, &e, item)))
			p.sequence++
			wire.WriteFrame(p.out, wire.AppendMessage(nil, &e, item), wire.DefaultMaxFrame)
		}
		p.send(&wire.StreamEnd{RequestID: r.RequestID, OperationID: r.OperationID, ItemCount: ask.N, ByteCount: bytes}, wire.NullUUID{})
		respond(nil, p.receipt(r, wire.ExecutionCompleted, wire.EffectNone, ""))
		return
	}
	var ask struct{ Line, Then string }
	json.Unmarshal(r.Payload, &ask)
	place := p.place("test.ops/write", r.IdempotencyKey)
	if raw, err := os.ReadFile(place); err == nil && r.IdempotencyKey != "" {
		var stored wire.Receipt
		if wire.Decode(raw, &stored) != nil {
			os.Exit(5)
		}
		if stored.ExecutionState == wire.ExecutionInProgress {
			stored.ExecutionState, stored.EffectState = wire.ExecutionAbandoned, wire.EffectUnknown
			p.send(&wire.Error{Code: wire.CodeFailedPrecondition, Message: "abandoned", BlameDomain: wire.BlameCaller, Severity: wire.SeverityError,
				RequestID: wire.Some(r.RequestID), OperationID: wire.Some(r.OperationID), Receipt: &stored}, cause)
			return
		}
		respond(json.RawMessage(`{"ok":true}`), &stored)
		return
	}
	claim := p.receipt(r, wire.ExecutionInProgress, wire.EffectUnknown, "")
	os.WriteFile(place, claim.AppendJSON(nil), 0o600)
	f, err := os.OpenFile(filepath.Join(p.dir, "effects"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		os.Exit(5)
	}
	fmt.Fprintln(f, ask.Line)
	f.Close()
	switch ask.Then {
	case "crash":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "exit":
		os.Exit(7)
	case "tell":
		told := "no secrets"
		for _, s := range r.Secrets {
			told = s.Pointer + " is " + s.Value
		}
		os.WriteFile(filepath.Join(p.dir, "secrets"), []byte(told), 0o600)
		fmt.Fprintln(os.Stderr, "they are:", told)
		p.send(&wire.ProgressUpdate{RequestID: r.RequestID, OperationID: r.OperationID, Message: told}, wire.NullUUID{})
		p.send(&wire.Error{Code: wire.CodeUnavailable, Message: told, Details: json.RawMessage(`{"told":` + strconv.Quote(told) + `}`), Retryable: true, BlameDomain: wire.BlameEnvironment, Severity: wire.SeverityError,
			RequestID: wire.Some(r.RequestID), OperationID: wire.Some(r.OperationID), Receipt: p.receipt(r, wire.ExecutionFailed, wire.EffectCommitted, wire.CodeUnavailable)}, cause)
		return
	case "hold":
		p.held[r.RequestID] = heldRequest{r, message}
		p.send(&wire.ProgressUpdate{RequestID: r.RequestID, OperationID: r.OperationID, Message: "holding"}, wire.NullUUID{})
		os.WriteFile(filepath.Join(p.dir, "held"), nil, 0o600)
		return
	case "malformed":
		p.out.Write([]byte{0, 0, 0, 2, '{', '{'})
		return
	case "fail":
		p.send(&wire.Error{Code: wire.CodeUnavailable, Message: "as asked", Retryable: true, BlameDomain: wire.BlameEnvironment, Severity: wire.SeverityError,
			RequestID: wire.Some(r.RequestID), OperationID: wire.Some(r.OperationID), Receipt: p.receipt(r, wire.ExecutionFailed, wire.EffectCommitted, wire.CodeUnavailable)}, cause)
		return
	}
	done := p.receipt(r, wire.ExecutionCompleted, wire.EffectCommitted, "")
	done.ReceiptID = claim.ReceiptID
	os.WriteFile(place, done.AppendJSON(nil), 0o600)
	respond(json.RawMessage(`{"ok":true}`), done)
}

func (p *sessionPlugin) place(action, key string) string {
	sum := sha256.Sum256([]byte(action + "\x00" + key))
	return filepath.Join(p.store, hex.EncodeToString(sum[:]))
}

func (p *sessionPlugin) receipt(r wire.Request, execution wire.ExecutionState, effect wire.EffectState, code wire.Code) *wire.Receipt {
	digest, err := wire.RequestDigest(r.CapabilityID, r.OperationName, r.OperationVersion, r.Payload)
	if err != nil {
		os.Exit(6)
	}
	now := time.Now()
	return &wire.Receipt{ReceiptID: wire.NewUUID(), PluginID: p.manifest.Plugin.PluginID, PublisherID: p.manifest.Publisher.PublisherID,
		PackageVersion: p.manifest.Version, ManifestDigest: p.manifest.Provenance.ManifestDigest, CapabilityID: r.CapabilityID, OperationName: r.OperationName,
		OperationVersion: r.OperationVersion, OperationID: r.OperationID, IdempotencyKey: r.IdempotencyKey, Attempt: r.Attempt, ExecutionState: execution,
		EffectState: effect, StartedAt: now, IssuedAt: now, RequestDigest: digest, ErrorCode: code, ExpiresAt: now.Add(time.Hour)}
}
