package wire_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/internal/strict"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

const (
	uuidA   = `"0197f9d2-6f31-7cb1-a612-5f5b7f7b8d19"`
	uuidB   = `"0197f9d2-6f33-75f7-bf1d-1c8451c879b8"`
	sha     = `"sha256:4444444444444444444444444444444444444444444444444444444444444444"`
	ids     = `"requestId":` + uuidA + `,"operationId":` + uuidB
	receipt = `{"receiptSchemaVersion":"urn:switchyard:receipt:1","receiptId":` + uuidA + `,"pluginId":"com.example.a","publisherId":"org.example",` +
		`"packageVersion":"1.0.0","manifestDigest":` + sha + `,"capabilityId":"catalog.index","operationName":"start","operationVersion":"1.0","operationId":` + uuidB + `,` +
		`"idempotencyKey":"k","attempt":2,"executionState":"completed","effectState":"committed","startedAtUtc":"2026-07-11T16:21:00Z","issuedAtUtc":"2026-07-11T16:21:01.5Z",` +
		`"requestDigest":` + sha + `,"resultDigest":` + sha + `,"itemCount":0,"byteCount":12,"errorCode":"internal","expiresAtUtc":"2026-08-11T16:21:01Z"}`
)

// bodies has a full example of each type, in the order in which it is written.
// Optional members are listed in optional, those that may be null in nullable.
var bodies = map[wire.MessageType]string{
	"hello": `{"hostVersion":"0.9","protocol":{"min":"1.0","max":"1.2"},"requires":["cancel.v1"],"supports":["progress.v1"],"codecs":["json"],"maxFrameBytes":8388608}`,
	"helloAck": `{"protocolVersion":"1.2","enabledFeatures":["cancel.v1"],"requires":[],"codec":"json","maxFrameBytes":65536,"manifestDigest":` + sha + `,` +
		`"plugin":{"pluginId":"com.example.a","publisherId":"org.example","packageVersion":"1.0.0"},` +
		`"deprecations":[{"element":"a/b","deprecatedSince":"1.0.0","sunsetAfter":"2.0.0","replacement":"a/c","behaviorAfterSunset":"error"}]}`,
	"init": `{"instanceId":"i-1","grants":[{"permissionsGrantId":"g","permissionId":"files","scope":"filesystem.read","expiresAtUtc":"2026-07-11T16:21:00Z"}],` +
		`"settings":{"a":{"b":[1]}},"settingsDigest":` + sha + `,"limits":{"requestTimeoutMs":1000,"heartbeatIntervalMs":500,"maxInFlight":4},"acceptedClasses":["public","internal"]}`,
	"initAck":           `{"status":"ready","message":"as always","capabilities":[{"id":"catalog.index","version":"1.0.0","operations":[{"name":"start","operationVersion":"1.0"}]}]}`,
	"settingsValidate":  `{"settings":{}}`,
	"settingsValidated": `{"valid":false,"normalized":{"a":1},"problems":[{"path":"/a","message":"too small"}]}`,
	"request": `{` + ids + `,"idempotencyKey":"k","attempt":1,"deadlineUtc":"2026-07-11T16:22:00.25Z","capabilityId":"catalog.index","operationName":"start","operationVersion":"1.0",` +
		`"permissionsGrantId":"g","payloadClass":"internal","payload":{"b":2,"a":[null]},"stream":{"request":true,"response":true,"initialCreditItems":1,"initialCreditBytes":2},` +
		`"diagnosticPolicy":"safe-default","retention":"none","secrets":{"/apiToken":"t\u0001"}}`,
	"response": `{` + ids + `,"payloadClass":"public","payload":[1,{"x":"y"}],"receipt":` + receipt + `}`,
	"error": `{"code":"conflict","message":"still running","retryable":true,"blameDomain":"caller","severity":"error",` + ids + `,"details":{"a":1},"receipt":` + receipt + `,` +
		`"existingOperationId":` + uuidB + `,"supportedProtocol":{"min":"1.0","max":"1.2"},"recommendedProtocolVersion":"1.1"}`,
	"progress":     `{` + ids + `,"message":"halfway","percentCompleted":50.5,"current":5,"total":10}`,
	"streamItem":   `{` + ids + `,"index":0,"payload":"x"}`,
	"streamEnd":    `{` + ids + `,"itemCount":3,"byteCount":900}`,
	"flow":         `{"requestId":` + uuidA + `,"creditItems":0,"creditBytes":9007199254740991}`,
	"cancel":       `{"requestId":` + uuidA + `,"reason":""}`,
	"cancelAck":    `{"requestId":` + uuidA + `}`,
	"cancelled":    `{` + ids + `,"receipt":` + receipt + `}`,
	"healthCheck":  `{"watch":true}`,
	"health":       `{"status":"degraded","message":"slow","updatedAtUtc":"2026-07-11T16:22:00Z"}`,
	"heartbeat":    `{"nonce":"n"}`,
	"heartbeatAck": `{"nonce":"n"}`,
	"receiptQuery": `{"pluginId":"com.example.a","capabilityId":"catalog.index","operationName":"start","idempotencyKey":"k"}`,
	"receipt":      receipt,
	"goAway":       `{"lastAcceptedSequence":7,"reason":"update","graceMs":0}`,
}

var (
	optional = map[wire.MessageType]string{
		"initAck": "message", "settingsValidated": "normalized", "request": "stream diagnosticPolicy retention secrets", "response": "receipt",
		"error": "details receipt existingOperationId supportedProtocol recommendedProtocolVersion", "progress": "percentCompleted current total",
		"cancelled": "receipt", "health": "message",
	}
	nullable = map[wire.MessageType]string{
		"request": "idempotencyKey deadlineUtc permissionsGrantId payload", "response": "payload", "error": "requestId operationId", "streamItem": "payload",
		"receipt": "idempotencyKey resultDigest errorCode",
	}
)

// members returns the names of an object's members, in order, and their values.
func members(t testing.TB, text string) (names []string, values map[string]json.RawMessage) {
	t.Helper()
	list, err := strict.Members([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	values = map[string]json.RawMessage{}
	for _, m := range list {
		names = append(names, m.Name)
		values[m.Name] = m.Value
	}
	return names, values
}

func object(names []string, values map[string]json.RawMessage) string {
	var parts []string
	for _, n := range names {
		if v, ok := values[n]; ok {
			parts = append(parts, `"`+n+`":`+string(v))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func decode(t testing.TB, typ wire.MessageType, text string) (wire.Body, error) {
	t.Helper()
	if err := strict.Check([]byte(text)); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	body := wire.NewBody(typ)
	return body, wire.Decode(json.RawMessage(text), body)
}

// TestBodies reads each body, writes it again to the same bytes, and takes each
// member out, makes it null, and adds one that there is not.
func TestBodies(t *testing.T) {
	if len(bodies) != len(wire.Messages) {
		t.Errorf("%d examples for %d types", len(bodies), len(wire.Messages))
	}
	for typ, text := range bodies {
		body, err := decode(t, typ, text)
		if err != nil {
			t.Errorf("%s: %v", typ, err)
			continue
		}
		if got := string(body.AppendJSON(nil)); got != text {
			t.Errorf("%s is written as\n%s\nnot\n%s", typ, got, text)
		}
		names, values := members(t, text)
		for _, name := range names {
			rest := map[string]json.RawMessage{}
			for n, v := range values {
				if n != name {
					rest[n] = v
				}
			}
			without := object(names, rest)
			may := slices.Contains(strings.Fields(optional[typ]), name)
			got, err := decode(t, typ, without)
			if (err == nil) != may || err != nil && (code(err) != wire.CodeSchemaMismatch || !strings.Contains(err.Error(), name)) {
				t.Errorf("%s without %s: %v", typ, name, err)
			}
			if err == nil && string(got.AppendJSON(nil)) != without {
				t.Errorf("%s without %s is written as %s", typ, name, got.AppendJSON(nil))
			}
			rest[name] = json.RawMessage("null")
			null := object(names, rest)
			may = slices.Contains(strings.Fields(nullable[typ]), name)
			got, err = decode(t, typ, null)
			if (err == nil) != may || err != nil && code(err) != wire.CodeSchemaMismatch {
				t.Errorf("%s with %s null: %v", typ, name, err)
			}
			if err == nil && string(got.AppendJSON(nil)) != null {
				t.Errorf("%s with %s null is written as %s", typ, name, got.AppendJSON(nil))
			}
			upper := strings.Replace(text, `"`+name+`":`, `"`+strings.ToUpper(name[:1])+name[1:]+`":`, 1)
			if _, err := decode(t, typ, upper); code(err) != wire.CodeSchemaUnknownMember {
				t.Errorf("%s with a misspelt %s: %v", typ, name, err)
			}
		}
		if _, err := decode(t, typ, strings.Replace(text, "{", `{"more":1,`, 1)); code(err) != wire.CodeSchemaUnknownMember || !strings.Contains(err.Error(), `"more"`) {
			t.Errorf("%s with an unknown member: %v", typ, err)
		}
		for _, no := range []string{`[]`, `null`, `"x"`, `1`, `true`} {
			if _, err := decode(t, typ, no); code(err) != wire.CodeSchemaMismatch {
				t.Errorf("%s as %s: %v", typ, no, err)
			}
		}
	}
}

// TestBodyValues puts a wrong value in the place of a good one.
func TestBodyValues(t *testing.T) {
	for _, tc := range []struct {
		typ            wire.MessageType
		old, new, path string // path is "" where the new value is good
	}{
		{"hello", `"1.0"`, `"1"`, "/protocol/min"},
		{"hello", `"max":"1.2"`, `"max":1.2`, "/protocol/max"},
		{"hello", `"cancel.v1"`, `"Cancel"`, "/requires/0"},
		{"hello", `["progress.v1"]`, `["progress.v1","progress.v1"]`, "/supports/1"},
		{"hello", `8388608`, `1023`, "/maxFrameBytes"},
		{"hello", `8388608`, `2147483648`, "/maxFrameBytes"},
		{"hello", `8388608`, `1e6`, ""},
		{"hello", `8388608`, `1024.5`, "/maxFrameBytes"},
		{"hello", `"0.9"`, `""`, "/hostVersion"},
		{"helloAck", `"sha256:4`, `"sha256:A`, "/manifestDigest"},
		{"helloAck", `"error"`, `"warn"`, "/deprecations/0/behaviorAfterSunset"},
		{"helloAck", `"org.example"`, `null`, "/plugin/publisherId"},
		{"init", `"2026-07-11T16:21:00Z"`, `"2026-07-11"`, "/grants/0/expiresAtUtc"},
		{"init", `"files"`, `"Files"`, "/grants/0/permissionId"},
		{"init", `{"a":{"b":[1]}}`, `[]`, "/settings"},
		{"init", `"maxInFlight":4`, `"maxInFlight":0`, "/limits/maxInFlight"},
		{"init", `"maxInFlight":4`, `"maxInFlight":4,"x":1`, "/limits"},
		{"init", `"public"`, `"open"`, "/acceptedClasses/0"},
		{"initAck", `"ready"`, `"unhealthy"`, "/status"},
		{"initAck", `"1.0"}`, `"one"}`, "/capabilities/0/operations/0/operationVersion"},
		{"settingsValidated", `false`, `0`, "/valid"},
		{"request", uuidA, `"x"`, "/requestId"},
		{"request", uuidA, strings.ToUpper(uuidA), ""},
		{"request", `"k"`, `""`, "/idempotencyKey"},
		{"request", `"k"`, `"` + strings.Repeat("é", 256) + `"`, ""},
		{"request", `"k"`, `"` + strings.Repeat("k", 257) + `"`, "/idempotencyKey"},
		{"request", `"attempt":1`, `"attempt":0`, "/attempt"},
		{"request", `"attempt":1`, `"attempt":1.0`, ""},
		{"request", `16:22:00.25Z`, `16:22:00.25`, "/deadlineUtc"},
		{"request", `2026-07-11T16:22:00.25Z`, `0001-01-01T00:00:00Z`, ""},
		{"request", `"catalog.index"`, `"c"`, "/capabilityId"},
		{"request", `"internal"`, `"Internal"`, "/payloadClass"},
		{"request", `"payload":{"b":2,"a":[null]}`, `"payload":false`, ""},
		{"request", `"stream":{"request":true,`, `"stream":{"request":1,`, "/stream/request"},
		{"request", `"stream":{"request":true,"response":true,"initialCreditItems":1,"initialCreditBytes":2}`, `"stream":{}`, ""},
		{"request", `"initialCreditItems":1`, `"initialCreditItems":-1`, "/stream/initialCreditItems"},
		{"request", `"none"`, `"forever"`, "/retention"},
		{"request", `"safe-default"`, `"all"`, "/diagnosticPolicy"},
		{"request", `{"/apiToken":"t\u0001"}`, `{"/a":"b","/c":1}`, "/secrets"},
		{"request", `{"/apiToken":"t\u0001"}`, `{"apiToken":"b"}`, "/secrets"},
		{"request", `{"/apiToken":"t\u0001"}`, `{"":"b"}`, ""},
		{"response", `"executionState":"completed"`, `"executionState":"done"`, "/receipt/executionState"},
		{"error", `"conflict"`, `"oops"`, "/code"},
		{"error", `"caller"`, `"nobody"`, "/blameDomain"},
		{"error", `"severity":"error"`, `"severity":"bad"`, "/severity"},
		{"error", `"message":"still`, `"message":"` + strings.Repeat("x", 4096) + `still`, "/message"},
		{"progress", `50.5`, `100.5`, "/percentCompleted"},
		{"progress", `50.5`, `"50"`, "/percentCompleted"},
		{"progress", `"current":5`, `"current":-5`, "/current"},
		{"streamItem", `"index":0`, `"index":-1`, "/index"},
		{"flow", `"creditItems":0`, `"creditItems":"0"`, "/creditItems"},
		{"healthCheck", `true`, `"true"`, "/watch"},
		{"health", `"degraded"`, `"ok"`, "/status"},
		{"heartbeat", `"n"`, `""`, "/nonce"},
		{"receipt", `"urn:switchyard:receipt:1"`, `"urn:switchyard:receipt:2"`, "/receiptSchemaVersion"},
		{"receipt", `"effectState":"committed"`, `"effectState":"done"`, "/effectState"},
		{"receipt", `"errorCode":"internal"`, `"errorCode":"x"`, "/errorCode"},
	} {
		text := bodies[tc.typ]
		if !strings.Contains(text, tc.old) {
			t.Fatalf("%s: nothing to replace: %s", tc.typ, tc.old)
		}
		_, err := decode(t, tc.typ, strings.Replace(text, tc.old, tc.new, 1))
		var f *wire.Fault
		switch {
		case tc.path == "" && err != nil:
			t.Errorf("%s: %.60s: %v", tc.typ, tc.new, err)
		case tc.path != "" && (!errors.As(err, &f) || f.Path != tc.path || f.Fatal()):
			t.Errorf("%s: %.60s: %v, want a fault at %s", tc.typ, tc.new, err, tc.path)
		}
	}
	for text, good := range map[string]bool{
		`{"receiptId":` + uuidA + `}`:  true,
		bodies["receiptQuery"]:         true,
		`{}`:                           false,
		`{"pluginId":"com.example.a"}`: false,
		`{"receiptId":` + uuidA + `,"pluginId":"a"}`:     false,
		`{"receiptId":"x"}`:                              false,
		`{"receiptId":` + uuidA + `,"capabilityId":"c"}`: false,
	} {
		if _, err := decode(t, "receiptQuery", text); (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestFaultsQuoteNoValues holds that what a fault says can be shown to anybody.
func TestFaultsQuoteNoValues(t *testing.T) {
	const canary = "CANARY"
	n := 0
	for typ, text := range bodies {
		names, values := members(t, text)
		for _, name := range names {
			changed := map[string]json.RawMessage{}
			for k, v := range values {
				changed[k] = v
			}
			changed[name] = json.RawMessage(`{"a":["` + canary + `"]}`)
			for _, v := range []string{`"` + canary + `"`, `["` + canary + `"]`, `{"x":"` + canary + `"}`} {
				changed[name] = json.RawMessage(v)
				if _, err := decode(t, typ, object(names, changed)); err != nil {
					n++
					if strings.Contains(err.Error(), canary) {
						t.Errorf("%s: %s", typ, err)
					}
				}
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d faults", n)
	}
}

func TestIds(t *testing.T) {
	for text, want := range map[string][2]bool{
		`{"payload":{"requestId":` + uuidB + `},"requestId":` + uuidA + `}`: {true, false},
		`{"operationId":` + uuidB + `,"x":[{"a":"}"}]}`:                     {false, true},
		`{"requestId":"x","operationId":null}`:                              {false, false},
		`[]`:                                                                {false, false}, `5`: {false, false}, `{}`: {false, false},
	} {
		request, operation := wire.Ids(json.RawMessage(text))
		if request.Set != want[0] || operation.Set != want[1] || request.Set && `"`+request.UUID.String()+`"` != uuidA {
			t.Errorf("%s: %v %v", text, request, operation)
		}
	}
}

func TestStringsWritten(t *testing.T) {
	for in, want := range map[string]string{
		"plain <&>": `"plain <&>"`, "\"\\/\b\f\n\r\t\x00\x1f\x7f": `"\"\\/\b\f\n\r\t\u0000\u001f` + "\x7f\"",
		"a\xffb": `"a` + "\uFFFD" + `b"`, "\uFFFE": `"` + "\uFFFD" + `"`, "é€😀": `"é€😀"`, "\xe2\x82": `"` + "\uFFFD\uFFFD" + `"`, "": `""`,
	} {
		got := string(wire.AppendString(nil, in))
		if got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
		if err := strict.Check([]byte(got)); err != nil {
			t.Errorf("%q: %v", in, err)
		}
	}
}

// FuzzScan compares with readers that know nothing of envelopes: whatever Scan
// accepts they accept, with the same members.
func FuzzScan(f *testing.F) {
	f.Add([]byte(requestFrame))
	f.Add([]byte(heartbeat))
	for typ, body := range bodies {
		f.Add([]byte(strings.NewReplacer("heartbeat", string(typ), `{"nonce":"n"}`, body).Replace(heartbeat)))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		var e wire.Envelope
		err := wire.Scan(frame, &e)
		sound := strict.Check(frame)
		if err != nil {
			var fault *wire.Fault
			var rule *strict.Error
			if !errors.As(err, &fault) || !fault.Fatal() || fault.Offset < 0 || fault.Offset > len(frame) {
				t.Fatalf("%q: %#v", frame, err)
			}
			if errors.As(sound, &rule) != (fault.Code != wire.CodeEnvelopeInvalid) || rule != nil && rule.Code != string(fault.Code) {
				t.Fatalf("%q: %v, by the value rules %v", frame, err, sound)
			}
			return
		}
		if sound != nil {
			t.Fatalf("%q: accepted; %v", frame, sound)
		}
		var all map[string]json.RawMessage
		if err := json.Unmarshal(frame, &all); err != nil || len(all) != 9 {
			t.Fatalf("%q: %d members, %v", frame, len(all), err)
		}
		if !reflect.DeepEqual(all[string(e.Type)], e.Body) || !reflect.DeepEqual(all["extensions"], e.Extensions) {
			t.Fatalf("%q: body %s, extensions %s", frame, e.Body, e.Extensions)
		}
		var again wire.Envelope
		if err := wire.Scan(wire.AppendRaw(nil, &e), &again); err != nil || !reflect.DeepEqual(e, again) {
			t.Fatalf("%q: written and read: %v\n%+v\n%+v", frame, err, e, again)
		}
	})
}

// FuzzBodies reads any JSON as every body: what is accepted is written and read
// to the same.
func FuzzBodies(f *testing.F) {
	for i, m := range wire.Messages {
		f.Add(uint8(i), []byte(bodies[m.Type]))
	}
	f.Fuzz(func(t *testing.T, which uint8, doc []byte) {
		if strict.Check(doc) != nil {
			return
		}
		typ := wire.Messages[int(which)%len(wire.Messages)].Type
		body, again := wire.NewBody(typ), wire.NewBody(typ)
		if err := wire.Decode(doc, body); err != nil {
			if c := code(err); c != wire.CodeSchemaMismatch && c != wire.CodeSchemaUnknownMember {
				t.Fatalf("%s %q: %v", typ, doc, err)
			}
			return
		}
		text := body.AppendJSON(nil)
		if err := wire.Decode(text, again); err != nil {
			t.Fatalf("%s %q is written as %s: %v", typ, doc, text, err)
		}
		if second := again.AppendJSON(nil); string(second) != string(text) {
			t.Fatalf("%s %q is written as %s, then as %s", typ, doc, text, second)
		}
		wire.Ids(doc)
	})
}
