package wire_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// requestFrame is the seed's own example.
const requestFrame = `{
  "protocolVersion": "1.1",
  "messageType": "request",
  "messageId": "0197f9d2-6f31-7cb1-a612-5f5b7f7b8d19",
  "sequence": 22,
  "timestampUtc": "2026-07-11T16:21:00Z",
  "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
  "causationId": null,
  "request": {
    "requestId": "0197f9d2-6f32-7ef4-9ad8-6a0d2dabe3ae",
    "operationId": "0197f9d2-6f33-75f7-bf1d-1c8451c879b8",
    "idempotencyKey": "8d7a53b4-5c9f-40c1-b9dc-56e8e9b6a7cf",
    "attempt": 1,
    "deadlineUtc": "2026-07-11T16:22:00Z",
    "capabilityId": "catalog.index",
    "operationName": "start",
    "operationVersion": "1.0",
    "permissionsGrantId": "grant-7ba86bff",
    "payloadClass": "internal",
    "payload": {
      "inputUris": ["hostlocal://selection/42"],
      "mode": "incremental"
    },
    "stream": {
      "response": true,
      "initialCreditItems": 16,
      "initialCreditBytes": 262144
    }
  },
  "extensions": {}
}`

func code(err error) wire.Code {
	var f *wire.Fault
	if errors.As(err, &f) {
		return f.Code
	}
	return ""
}

func TestSeedRequest(t *testing.T) {
	var e wire.Envelope
	if err := wire.Scan([]byte(requestFrame), &e); err != nil {
		t.Fatal(err)
	}
	if e.Version != (wire.Version{Major: 1, Minor: 1}) || e.Type != wire.TypeRequest || e.Sequence != 22 ||
		e.MessageID.String() != "0197f9d2-6f31-7cb1-a612-5f5b7f7b8d19" || e.TraceID.String() != "4bf92f3577b34da6a3ce929d0e0e4736" ||
		e.CausationID.Set || string(e.Extensions) != "{}" || !e.Timestamp.Equal(time.Date(2026, 7, 11, 16, 21, 0, 0, time.UTC)) {
		t.Errorf("%+v", e)
	}
	var r wire.Request
	if err := wire.Decode(e.Body, &r); err != nil {
		t.Fatal(err)
	}
	if r.RequestID.String() != "0197f9d2-6f32-7ef4-9ad8-6a0d2dabe3ae" || r.Attempt != 1 || r.CapabilityID != "catalog.index" ||
		r.PermissionsGrantID != "grant-7ba86bff" || r.Stream == nil || !r.Stream.Response || r.Stream.CreditBytes.N != 262144 ||
		!strings.HasPrefix(string(r.Payload), "{\n") {
		t.Errorf("%+v", r)
	}
	// Written again, it is the same document.
	again := wire.AppendMessage(nil, &e, &r)
	if a, b := canonical(t, []byte(requestFrame)), canonical(t, again); a != b {
		t.Errorf("read and written:\n%s\n%s", a, b)
	}
	request, operation := wire.Ids(e.Body)
	if request != wire.Some(r.RequestID) || operation != wire.Some(r.OperationID) {
		t.Errorf("Ids: %v %v", request, operation)
	}
}

func canonical(t *testing.T, doc []byte) string {
	t.Helper()
	c, err := wire.Canonical(doc)
	if err != nil {
		t.Fatalf("%v: %s", err, doc)
	}
	return string(c)
}

// heartbeat is a small envelope in which the tests replace parts.
const heartbeat = `{"protocolVersion":"1.2","messageType":"heartbeat","messageId":"0197f9d2-6f31-7cb1-a612-5f5b7f7b8d19","sequence":1,` +
	`"timestampUtc":"2026-07-11T16:21:00.123456Z","traceId":null,"causationId":null,"heartbeat":{"nonce":"n"},"extensions":{}}`

func TestScan(t *testing.T) {
	big := `{"com.example.a":"` + strings.Repeat("x", wire.MaxExtensions-len(`{"com.example.a":""}`)) + `"}`
	for _, tc := range []struct{ old, new, code string }{
		{"", "", ""},
		{`"sequence":1`, `"sequence":1e0`, ""},
		{`"sequence":1`, `"sequence":9007199254740991`, ""},
		{`"messageType"`, `"message\u0054ype"`, ""},
		{`"heartbeat":{`, `"h\u0065artbeat":{`, ""},
		{`"messageType":"heartbeat"`, `"messageType":"heart\u0062eat"`, ""},
		{`"traceId":null`, `"traceId":"4BF92f3577b34da6a3ce929d0e0e4736"`, ""},
		{`"causationId":null`, `"causationId":"00000000-0000-0000-0000-000000000000"`, ""},
		{`"extensions":{}`, `"extensions":{"com.example.a-b":{"any":[1]},"x.y":null}`, ""},
		{`"extensions":{}`, `"extensions":` + big, ""},
		{`{"nonce":"n"}`, `5`, ""}, // the body is judged by Decode
		{`"1.2"`, `"1"`, "envelope.invalid"},
		{`"1.2"`, `"01.2"`, "envelope.invalid"},
		{`"1.2"`, `1.2`, "envelope.invalid"},
		{`"messageType":"heartbeat"`, `"messageType":"Heartbeat"`, "envelope.invalid"},
		{`"messageType":"heartbeat"`, `"messageType":"pause"`, "envelope.invalid"},
		{`"messageType":"heartbeat"`, `"messageType":"heartbeatAck"`, "envelope.invalid"},
		{`"heartbeat":{`, `"Heartbeat":{`, "envelope.invalid"},
		{`,"heartbeat":{"nonce":"n"}`, ``, "envelope.invalid"},
		{`"heartbeat":{"nonce":"n"}`, `"heartbeat":{"nonce":"n"},"more":1`, "envelope.invalid"},
		{`"heartbeat":{"nonce":"n"}`, `"more":1,"heartbeat":{"nonce":"n"}`, "envelope.invalid"},
		{`b8d19"`, `b8d1"`, "envelope.invalid"},
		{`"0197f9d2-6f31-7cb1-a612-5f5b7f7b8d19"`, `"{197f9d2-6f31-7cb1-a612-5f5b7f7b8d19"`, "envelope.invalid"},
		{`"sequence":1`, `"sequence":0`, "envelope.invalid"},
		{`"sequence":1`, `"sequence":-1`, "envelope.invalid"},
		{`"sequence":1`, `"sequence":1.5`, "envelope.invalid"},
		{`"sequence":1`, `"sequence":"1"`, "envelope.invalid"},
		{`"sequence":1`, `"sequence":9007199254740992`, "json.number"},
		{`07-11T`, `02-30T`, "envelope.invalid"},
		{`00.123456Z`, `00.1234567Z`, "envelope.invalid"},
		{`00.123456Z`, `00.Z`, "envelope.invalid"},
		{`00.123456Z`, `60Z`, "envelope.invalid"},
		{`00.123456Z`, `00+00:00`, "envelope.invalid"},
		{`00.123456Z`, `00z`, "envelope.invalid"},
		{`11T16`, `11t16`, "envelope.invalid"},
		{`"traceId":null`, `"traceId":"4bf9"`, "envelope.invalid"},
		{`"traceId":null`, `"traceId":""`, "envelope.invalid"},
		{`"causationId":null`, `"causationId":"n"`, "envelope.invalid"},
		{`"traceId":null,`, ``, "envelope.invalid"},
		{`"extensions":{}`, `"extensions":null`, "envelope.invalid"},
		{`"extensions":{}`, `"extensions":{"trace":1}`, "envelope.invalid"},
		{`"extensions":{}`, `"extensions":{"Com.example":1}`, "envelope.invalid"},
		{`"extensions":{}`, `"extensions":` + big[:len(big)-2] + `x"}`, "envelope.invalid"},
		{`,"extensions":{}`, ``, "envelope.invalid"},
		{`"sequence":1`, `"sequence":1,"sequence":1`, "json.duplicate_name"},
		{`"nonce":"n"`, `"nonce":"n","no\u006ece":"n"`, "json.duplicate_name"},
		{`"nonce":"n"`, `"nonce":"\ud800"`, "json.invalid_unicode"},
		{`"nonce":"n"`, "\"nonce\":\"\xff\"", "json.invalid_unicode"},
		{`"nonce":"n"`, `"nonce":1e400`, "json.number"},
		{`"nonce":"n"`, `"nonce":` + strings.Repeat("[", 63) + strings.Repeat("]", 63), "json.limit"},
		{`"nonce":"n"`, `"nonce":"` + strings.Repeat("x", 1<<20+1) + `"`, "json.limit"},
		{`"nonce":"n"`, `"nonce":`, "json.syntax"},
		{`"extensions":{}}`, `"extensions":{}}{}`, "json.syntax"},
		// A broken value rule is the answer even after a broken envelope.
		{`"sequence":1,`, `"sequence":0,"x":"\ud800",`, "json.invalid_unicode"},
	} {
		frame := heartbeat
		if tc.old != "" {
			if !strings.Contains(frame, tc.old) {
				t.Fatalf("nothing to replace: %s", tc.old)
			}
			frame = strings.Replace(frame, tc.old, tc.new, 1)
		}
		var e wire.Envelope
		err := wire.Scan([]byte(frame), &e)
		if string(code(err)) != tc.code {
			t.Errorf("%.60s → %.60s: %v (%s), want %q", tc.old, tc.new, err, code(err), tc.code)
		}
		if err == nil && (e.MessageID == wire.UUID{} || e.Type != wire.TypeHeartbeat || len(e.Body) == 0 || len(e.Extensions) == 0) {
			t.Errorf("%s: %+v", tc.new, e)
		}
		if f := (*wire.Fault)(nil); errors.As(err, &f) && !f.Fatal() {
			t.Errorf("%s is not fatal", f.Code)
		}
	}
	for frame, want := range map[string]wire.Code{
		`[]`: "envelope.invalid", `null`: "envelope.invalid", ` {} `: "envelope.invalid", "": "json.syntax", `5 5`: "json.syntax",
		"\xEF\xBB\xBF{}": "json.invalid_unicode",
	} {
		var e wire.Envelope
		if got := code(wire.Scan([]byte(frame), &e)); got != want {
			t.Errorf("%q: %q, want %q", frame, got, want)
		}
	}
}

func TestScanTakesAnyOrder(t *testing.T) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(heartbeat), &members); err != nil {
		t.Fatal(err)
	}
	var want wire.Envelope
	if err := wire.Scan([]byte(heartbeat), &want); err != nil {
		t.Fatal(err)
	}
	for range 50 { // the iteration order of a map is random
		var b strings.Builder
		for name, value := range members {
			b.WriteString(map[bool]string{true: "{", false: ","}[b.Len() == 0])
			b.WriteString(` "` + name + `" : ` + string(value))
		}
		b.WriteString(" }")
		var e wire.Envelope
		if err := wire.Scan([]byte(b.String()), &e); err != nil {
			t.Fatalf("%v: %s", err, b.String())
		}
		if got, want := string(wire.AppendRaw(nil, &e)), string(wire.AppendRaw(nil, &want)); got != want {
			t.Fatalf("%s\n%s", got, want)
		}
	}
	if got := string(wire.AppendRaw(nil, &want)); got != heartbeat {
		t.Errorf("written:\n%s", got)
	}
}

func TestScanAllocatesNothing(t *testing.T) {
	frame := []byte(requestFrame)
	if n := testing.AllocsPerRun(100, func() {
		var e wire.Envelope
		if err := wire.Scan(frame, &e); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
