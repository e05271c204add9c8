package schemas_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/schemas"
	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
	"github.com/switchyard-plugins/switchyard/schemas/subset"
)

// sessionSchemas are the documents of the session protocol. Their $id has a version.
var sessionSchemas = []string{
	"plugin-manifest.schema.json", "session-messages.schema.json", "error.schema.json", "receipt.schema.json", "settings-annotations.schema.json", "package-schema.schema.json",
}

func document(t testing.TB, name string) map[string]any {
	t.Helper()
	text, err := schemas.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// The protocol's own schemas keep to the subset that packages must keep to, and to the
// schema of it.
func TestOwnSchemasAreOfTheSubset(t *testing.T) {
	meta := compile(t, "package-schema.schema.json")
	for _, name := range sessionSchemas {
		text, err := schemas.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range subset.Check(text) {
			t.Errorf("%s: %s", name, p)
		}
		if err := meta.Validate(value(t, text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What one document embeds of another is the other, without what that embeds.
func TestEmbeddedSchemas(t *testing.T) {
	originals := map[string]map[string]any{}
	for _, name := range sessionSchemas {
		doc := document(t, name)
		originals[doc["$id"].(string)] = doc
	}
	n := 0
	for _, name := range sessionSchemas {
		for key, def := range definitions(document(t, name)) {
			embedded, _ := def.(map[string]any)
			id, ok := embedded["$id"].(string)
			if !ok {
				continue
			}
			n++
			original := maps.Clone(originals[id])
			if defs := definitions(original); defs != nil {
				defs = maps.Clone(defs)
				maps.DeleteFunc(defs, func(_ string, d any) bool { _, has := d.(map[string]any)["$id"]; return has })
				original["$defs"] = defs
			}
			if !reflect.DeepEqual(embedded, original) {
				t.Errorf("%s: $defs/%s is not %s", name, key, id)
			}
		}
	}
	if n < 3 {
		t.Errorf("only %d embedded documents", n)
	}
}

func definitions(doc map[string]any) map[string]any {
	defs, _ := doc["$defs"].(map[string]any)
	return defs
}

// The words in the schemas are those of the Go packages.
func TestSessionVocabulary(t *testing.T) {
	text := func(list any) []string {
		var out []string
		for v := reflect.ValueOf(list); len(out) < v.Len(); {
			out = append(out, v.Index(len(out)).String())
		}
		return out
	}
	at := func(name string, path ...string) any {
		var v any = document(t, name)
		for _, p := range path {
			m, ok := v.(map[string]any)
			if !ok {
				t.Fatalf("%s has nothing at %q", name, path)
			}
			v = m[p]
		}
		return v
	}
	words := func(name string, path ...string) []string {
		list, _ := at(name, append(path, "enum")...).([]any)
		var out []string
		for _, w := range list {
			out = append(out, fmt.Sprint(w))
		}
		return out
	}
	const m, msg = "plugin-manifest.schema.json", "session-messages.schema.json"
	p := func(path ...string) []string { return append([]string{"properties"}, path...) }
	for what, pair := range map[string][2][]string{
		"scopes":        {words(m, p("permissions", "items", "properties", "scope")...), text(sessionmanifest.Scopes)},
		"systems":       {words(m, p("runtime", "properties", "os", "items")...), text(sessionmanifest.Systems)},
		"architectures": {words(m, p("runtime", "properties", "architectures", "items")...), text(sessionmanifest.Architectures)},
		"schemes":       {words(m, p("network", "properties", "destinations", "items", "properties", "scheme")...), sessionmanifest.Schemes},
		"classes":       {words(m, p("dataDeclarations", "properties", "acceptedClasses", "items")...), text(sessionmanifest.Classes)},
		"inbound":       {words(m, p("dataDeclarations", "properties", "defaultInboundClass")...), text(sessionmanifest.Classes)},
		"of receipts":   {words(m, p("dataDeclarations", "properties", "defaultReceiptClass")...), text(sessionmanifest.ReceiptClasses)},
		"background":    {words(m, p("lifecycle", "properties", "backgroundBehavior")...), sessionmanifest.BackgroundBehaviors},
		"of payloads":   {words(msg, "$defs", "class"), text(sessionmanifest.Classes)},
		"widgets":       {words("settings-annotations.schema.json", p(subset.AnnotationWidget)...), subset.Widgets},
		"redactions":    {words("settings-annotations.schema.json", p(subset.AnnotationRedact)...), subset.Redactions},
	} {
		if len(pair[0]) == 0 || !slices.Equal(pair[0], pair[1]) {
			t.Errorf("%s: the schema has %q, Go has %q", what, pair[0], pair[1])
		}
	}
	for what, pair := range map[string][2]any{
		"id":           {at(m, p("plugin", "properties", "pluginId", "maxLength")...), sessionmanifest.MaxID},
		"description":  {at(m, p("plugin", "properties", "description", "maxLength")...), sessionmanifest.MaxDescription},
		"display name": {at(m, "$defs", "displayName", "maxLength"), sessionmanifest.MaxDisplayName},
		"categories":   {at(m, p("plugin", "properties", "categories", "maxItems")...), sessionmanifest.MaxCategories},
		"host pattern": {at(m, p("network", "properties", "destinations", "items", "properties", "hostPattern", "maxLength")...), sessionmanifest.MaxHostPattern},
		"enum":         {at("package-schema.schema.json", p("enum", "maxItems")...), subset.MaxEnum},
		"pattern":      {at("package-schema.schema.json", p("pattern", "maxLength")...), subset.MaxPattern},
		"branches":     {at("package-schema.schema.json", "$defs", "schemas", "maxItems"), subset.MaxBranches},
	} {
		if fmt.Sprint(pair[0]) != fmt.Sprint(pair[1]) {
			t.Errorf("%s: the schema has %v, Go has %v", what, pair[0], pair[1])
		}
	}
	if got := at(m, p("manifestSchemaVersion", "const")...); got != sessionmanifest.SchemaVersion {
		t.Errorf("manifestSchemaVersion: %v", got)
	}
}

// bodies has one valid body of every message, all optional members present; those are
// listed in optional by messageType and JSON Pointer.
var bodies = map[string]string{
	"hello":             `{"hostVersion":"1.0.0","protocol":{"min":"1.0","max":"1.2"},"requires":["cancel.v1"],"supports":[],"codecs":["json"],"maxFrameBytes":8388608}`,
	"helloAck":          `{"protocolVersion":"1.2","enabledFeatures":["cancel.v1"],"requires":[],"codec":"json","maxFrameBytes":8388608,"manifestDigest":"sha256:` + hex64 + `","plugin":{"pluginId":"com.example.x","publisherId":"org.example","packageVersion":"1.0.0"},"deprecations":[{"element":"operation:aa.bb/cc","deprecatedSince":"2026-01-01T00:00:00Z","sunsetAfter":"2027-01-01T00:00:00Z","replacement":"operation:aa.bb/dd","behaviorAfterSunset":"error"}]}`,
	"init":              `{"instanceId":"i1","grants":[{"permissionsGrantId":"grant-1","permissionId":"files","scope":"filesystem.read","expiresAtUtc":"2027-01-01T00:00:00Z"}],"settings":{"any":[1]},"settingsDigest":"sha256:` + hex64 + `","limits":{"requestTimeoutMs":1,"heartbeatIntervalMs":1,"maxInFlight":1},"acceptedClasses":["public"]}`,
	"initAck":           `{"status":"ready","message":"m","capabilities":[{"id":"aa","version":"1.0.0","operations":[{"name":"op","operationVersion":"1.0"}]}]}`,
	"settingsValidate":  `{"settings":{}}`,
	"settingsValidated": `{"valid":false,"normalized":{},"problems":[{"path":"/a","message":"m"}]}`,
	"request": `{"requestId":"` + uuid + `","operationId":"` + uuid + `","idempotencyKey":null,"attempt":1,"deadlineUtc":"2026-07-11T16:22:00Z","capabilityId":"catalog.index","operationName":"start","operationVersion":"1.0","permissionsGrantId":"grant-1","payloadClass":"internal","payload":{"a":1},` +
		`"stream":{"request":false,"response":true,"initialCreditItems":16,"initialCreditBytes":262144},"diagnosticPolicy":"safe-default","retention":"short","secrets":{"/apiToken":"s"}}`,
	"response":     `{"requestId":"` + uuid + `","operationId":"` + uuid + `","payloadClass":"public","payload":null,"receipt":` + receipt + `}`,
	"error":        `{"code":"conflict","message":"m","retryable":true,"blameDomain":"caller","severity":"error","requestId":null,"operationId":"` + uuid + `","details":{"n":1},"receipt":` + receipt + `,"existingOperationId":"` + uuid + `","supportedProtocol":{"min":"1.0","max":"1.2"},"recommendedProtocolVersion":"1.1"}`,
	"progress":     `{"requestId":"` + uuid + `","operationId":"` + uuid + `","message":"m","percentCompleted":12.5,"current":1,"total":8}`,
	"streamItem":   `{"requestId":"` + uuid + `","operationId":"` + uuid + `","index":0,"payload":[]}`,
	"streamEnd":    `{"requestId":"` + uuid + `","operationId":"` + uuid + `","itemCount":0,"byteCount":0}`,
	"flow":         `{"requestId":"` + uuid + `","creditItems":1,"creditBytes":1}`,
	"cancel":       `{"requestId":"` + uuid + `","reason":"r"}`,
	"cancelAck":    `{"requestId":"` + uuid + `"}`,
	"cancelled":    `{"requestId":"` + uuid + `","operationId":"` + uuid + `","receipt":` + receipt + `}`,
	"healthCheck":  `{"watch":true}`,
	"health":       `{"status":"healthy","message":"m","updatedAtUtc":"2026-07-11T16:22:00.123456Z"}`,
	"heartbeat":    `{"nonce":"n"}`,
	"heartbeatAck": `{"nonce":"n"}`,
	"receiptQuery": `{"receiptId":"` + uuid + `"}`,
	"receipt":      receipt,
	"goAway":       `{"lastAcceptedSequence":0,"reason":"r","graceMs":0}`,
}

const (
	uuid    = "0197f9d2-6f31-7cb1-a612-5f5b7f7b8d19"
	hex64   = "1111111111111111111111111111111111111111111111111111111111111111"
	receipt = `{"receiptSchemaVersion":"urn:switchyard:receipt:1","receiptId":"` + uuid + `","pluginId":"com.example.x","publisherId":"org.example","packageVersion":"1.0.0","manifestDigest":"sha256:` + hex64 + `","capabilityId":"aa","operationName":"op","operationVersion":"1.0",` +
		`"operationId":"` + uuid + `","idempotencyKey":"k","attempt":1,"executionState":"completed","effectState":"committed","startedAtUtc":"2026-07-11T16:22:00Z","issuedAtUtc":"2026-07-11T16:22:00Z","requestDigest":"sha256:` + hex64 + `","resultDigest":null,"itemCount":0,"byteCount":0,"errorCode":null,"expiresAtUtc":"2026-07-12T16:22:00Z"}`
)

var optional = map[string][]string{
	"helloAck":          {"/deprecations/0/replacement"},
	"init":              {"/grants/0/expiresAtUtc", "/settings/any"},
	"initAck":           {"/message"},
	"settingsValidated": {"/normalized"},
	"request":           {"/stream", "/stream/request", "/stream/response", "/stream/initialCreditItems", "/stream/initialCreditBytes", "/diagnosticPolicy", "/retention", "/secrets", "/secrets/~1apiToken", "/payload/a"},
	"response":          {"/receipt"},
	"error":             {"/details", "/details/n", "/receipt", "/existingOperationId", "/supportedProtocol", "/recommendedProtocolVersion"},
	"progress":          {"/percentCompleted", "/current", "/total"},
	"cancelled":         {"/receipt"},
	"health":            {"/message"},
}

// anything are the places that take any value, a string included.
var anything = []string{"/request/payload", "/request/payload/a", "/response/payload", "/streamItem/payload", "/streamItem/payload/0", "/init/settings/any", "/init/settings/any/0", "/error/details/n", "/extensions/com.example/x"}

// free are objects that take members of any name.
var free = []string{"/request/payload", "/init/settings", "/settingsValidate/settings", "/settingsValidated/normalized", "/error/details"}

func envelope(kind, body string) string {
	return `{"protocolVersion":"1.1","messageType":"` + kind + `","messageId":"` + uuid + `","sequence":1,"timestampUtc":"2026-07-11T16:20:00Z","traceId":"4bf92f3577b34da6a3ce929d0e0e4736","causationId":null,"extensions":{"com.example":{}},"` + kind + `":` + body + `}`
}

// judges returns the verdicts of the full validator and of the subset's, which must
// be the same.
func judges(t *testing.T, name string) func(what string, doc []byte) bool {
	t.Helper()
	full := compile(t, name)
	text, err := schemas.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	light, err := subset.Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	return func(what string, doc []byte) bool {
		t.Helper()
		problems, err := light.Validate(doc), full.Validate(value(t, doc))
		if (problems == nil) != (err == nil) {
			t.Errorf("%s: %s\nlight: %v\nfull: %v", what, doc, problems, err)
		}
		return err == nil
	}
}

// places calls tell for every value below v with a function that replaces it; with
// absent the value is removed.
type absent struct{}

func places(v any, at string, replace func(any), tell func(at string, v any, inObject bool, replace func(any))) {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			here := at + "/" + strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
			set := func(n any) {
				if _, gone := n.(absent); gone {
					delete(v, name)
					return
				}
				v[name] = n
			}
			tell(here, inner, true, set)
			places(inner, here, set, tell)
		}
	case []any:
		for i, inner := range v {
			here := fmt.Sprintf("%s/%d", at, i)
			set := func(n any) { v[i] = n }
			tell(here, inner, false, set)
			places(inner, here, set, tell)
		}
	}
}

// TestMessages: every message is accepted; without a member that is not optional, with
// one too many, with null and with another type in any place it is refused, by the
// full validator and by the subset's alike.
func TestMessages(t *testing.T) {
	judge := judges(t, "session-messages.schema.json")
	if len(bodies) != len(document(t, "session-messages.schema.json")["oneOf"].([]any)) {
		t.Errorf("%d bodies", len(bodies))
	}
	nullable := []string{"/traceId", "/causationId", "/request/idempotencyKey", "/request/deadlineUtc", "/request/permissionsGrantId", "/error/requestId", "/error/operationId",
		"/receipt/idempotencyKey", "/receipt/resultDigest", "/receipt/errorCode"}
	cases := 0
	for kind, body := range bodies {
		text := envelope(kind, body)
		if !judge(kind, []byte(text)) {
			t.Errorf("%s: refused %s", kind, text)
			continue
		}
		var doc any
		if err := json.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		check := func(what string, want bool) {
			t.Helper()
			changed, err := json.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			cases++
			if got := judge(what, changed); got != want {
				t.Errorf("%s: valid %v, want %v: %s", what, got, want, changed)
			}
		}
		places(doc, "", nil, func(at string, v any, inObject bool, replace func(any)) {
			inside := strings.TrimPrefix(at, "/"+kind)
			isOptional := at == "/extensions/com.example" || inside != at && slices.Contains(optional[kind], inside)
			takesAny := slices.Contains(anything, at) || strings.HasPrefix(at, "/extensions/")
			isNullable := takesAny || slices.ContainsFunc(nullable, func(n string) bool { return at == n || strings.HasSuffix(at, n) && strings.HasPrefix(n, "/receipt") })
			if inObject {
				replace(absent{})
				check(kind+" without "+at, isOptional)
			}
			replace(nil)
			check(kind+" null at "+at, isNullable)
			switch v.(type) {
			case string:
				replace(1.5)
			case []any:
				replace("text")
			default:
				replace([]any{})
			}
			check(kind+" another type at "+at, takesAny)
			replace(v)
			if object, ok := v.(map[string]any); ok {
				object["surplus"] = true
				check(kind+" surplus at "+at, takesAny || slices.Contains(free, at))
				delete(object, "surplus")
			}
		})
		top := doc.(map[string]any)
		for _, other := range []string{"surplus", "hello", "goAway"} {
			if other != kind {
				top[other] = map[string]any{}
				check(kind+" with "+other, false)
				delete(top, other)
			}
		}
		for name, wrong := range map[string][]any{
			"messageType": {"unknown", strings.ToUpper(kind)}, "sequence": {0.0, -1.0, 1.5}, "protocolVersion": {"1", "1.0.0", ""}, "messageId": {"x", ""},
			"timestampUtc": {"2026-07-11T16:20:00+00:00", "2026-07-11T16:20:00.1234567Z", "2026-07-11t16:20:00z", "2026-02-30T16:20:00Z", "2016-12-31T23:59:60Z"},
			"traceId":      {"4bf9", "4bf92f3577b34da6a3ce929d0e0e473g"}, "causationId": {"x"}, "extensions": {map[string]any{"Example": 1}, map[string]any{"x": 1}, []any{}},
		} {
			good := top[name]
			for _, w := range wrong {
				top[name] = w
				check(fmt.Sprintf("%s with %s %v", kind, name, w), false)
			}
			top[name] = good
		}
	}
	if cases < 1500 {
		t.Errorf("only %d cases", cases)
	}
}

// Members whose values have a form or bound of their own.
func TestMessageForms(t *testing.T) {
	judge := judges(t, "session-messages.schema.json")
	for _, c := range []struct {
		kind, old, new string
		want           bool
	}{
		{"request", `"attempt":1`, `"attempt":0`, false},
		{"request", `"internal"`, `"private"`, false},
		{"request", `"safe-default"`, `"all"`, false},
		{"request", `"short"`, `"long"`, false},
		{"request", `"idempotencyKey":null`, `"idempotencyKey":""`, false},
		{"request", `"idempotencyKey":null`, `"idempotencyKey":"` + strings.Repeat("k", 256) + `"`, true},
		{"request", `"idempotencyKey":null`, `"idempotencyKey":"` + strings.Repeat("k", 257) + `"`, false},
		{"request", `"payload":{"a":1}`, `"payload":null`, true},
		{"request", `"initialCreditItems":16`, `"initialCreditItems":-1`, false},
		{"hello", `["json"]`, `[]`, true},
		{"hello", `["json"]`, `[""]`, false},
		{"hello", `"maxFrameBytes":8388608`, `"maxFrameBytes":1023`, false},
		{"hello", `"maxFrameBytes":8388608`, `"maxFrameBytes":2147483648`, false},
		{"initAck", `"ready"`, `"failed"`, false},
		{"progress", `12.5`, `100`, true},
		{"progress", `12.5`, `100.5`, false},
		{"error", `"conflict"`, `"json.duplicate_name"`, true},
		{"error", `"conflict"`, `"Conflict"`, false},
		{"error", `"caller"`, `"somebody"`, false},
		{"error", `"severity":"error"`, `"severity":"deadly"`, false},
		{"receiptQuery", bodies["receiptQuery"], `{"pluginId":"com.example.x","capabilityId":"aa","operationName":"op","idempotencyKey":"k"}`, true},
		{"receiptQuery", bodies["receiptQuery"], `{"receiptId":"` + uuid + `","pluginId":"com.example.x"}`, false},
		{"receiptQuery", bodies["receiptQuery"], `{}`, false},
		{"receipt", `"completed"`, `"done"`, false},
		{"receipt", `"committed"`, `"perhaps"`, false},
		{"receipt", `"requestDigest":"sha256:1`, `"requestDigest":"sha512:1`, false},
		{"health", `"healthy"`, `"fine"`, false},
		{"helloAck", `"operation:aa.bb/cc"`, `""`, false},
	} {
		text := strings.Replace(envelope(c.kind, bodies[c.kind]), c.old, c.new, 1)
		if text == envelope(c.kind, bodies[c.kind]) {
			t.Fatalf("%q is not in %s", c.old, c.kind)
		}
		if got := judge(c.kind, []byte(text)); got != c.want {
			t.Errorf("%s with %s: valid %v", c.kind, c.new, got)
		}
	}
}

// The single documents judge as the compound one does.
func TestErrorAndReceipt(t *testing.T) {
	for name, body := range map[string]string{"error.schema.json": bodies["error"], "receipt.schema.json": receipt} {
		judge := judges(t, name)
		if !judge(name, []byte(body)) {
			t.Errorf("%s: refused", name)
		}
		for _, bad := range []string{`{}`, `[]`, `null`, strings.Replace(body, "{", `{"surplus":1,`, 1), strings.Replace(body, uuid, "x", 1)} {
			if judge(name, []byte(bad)) {
				t.Errorf("%s: accepted %s", name, bad)
			}
		}
	}
}
