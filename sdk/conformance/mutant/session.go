package mutant

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"slices"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A session is one connection.
type session struct {
	p       *program
	m       *manifest
	out     io.Writer
	version string // "" before helloAck
	enabled map[string]bool
	maxIn   int
	maxOut  int
	stage   stage
	grace   time.Duration // of goAway
	init    initBody
	store   *store

	writing  sync.Mutex
	sequence uint64
	lastID   string

	mu       sync.Mutex
	ops      map[string]*op    // by requestId, while they run
	past     map[string]string // requestIds that have ended, and their traces
	health   healthReport
	watching string // messageId of the watch
	looked   uint64 // the last sequence that was looked at
	leaving  bool   // asked to terminate
	working  sync.WaitGroup
}

type stage int

const (
	negotiating stage = iota
	initializing
	ready
	draining
)

type healthReport struct{ status, message string }

type grant struct {
	PermissionsGrantID, PermissionID, Scope string
	ExpiresAtUtc                            *time.Time
}

type initBody struct {
	InstanceID      string
	Grants          []grant
	Settings        json.RawMessage
	SettingsDigest  string
	Limits          struct{ MaxInFlight, RequestTimeoutMs int }
	AcceptedClasses []string
}

// bodySchemas are the bodies that a host sends.
var bodySchemas = map[string]string{
	"hello": `{` + closed + `,"required":["hostVersion","protocol","requires","supports","codecs","maxFrameBytes"],"properties":{"hostVersion":{"type":"string"},
		"protocol":{` + closed + `,"required":["min","max"],"properties":{"min":{"type":"string",` + versionPattern + `},"max":{"type":"string",` + versionPattern + `}}},
		"requires":{"type":"array","items":{"type":"string"}},"supports":{"type":"array","items":{"type":"string"}},"codecs":{"type":"array","items":{"type":"string"}},
		"maxFrameBytes":{"type":"integer","minimum":1024,"maximum":2147483647}}}`,
	"init": `{` + closed + `,"required":["instanceId","grants","settings","settingsDigest","limits","acceptedClasses"],"properties":{"instanceId":{"type":"string"},
		"grants":{"type":"array","items":{` + closed + `,"required":["permissionsGrantId","permissionId","scope"],"properties":{"permissionsGrantId":{"type":"string"},"permissionId":{"type":"string"},"scope":{"type":"string"},"expiresAtUtc":{"type":"string","format":"date-time"}}}},
		"settings":{"type":"object"},"settingsDigest":{"type":"string",` + digestPattern + `},
		"limits":{` + closed + `,"required":["requestTimeoutMs","heartbeatIntervalMs","maxInFlight"],"properties":{"requestTimeoutMs":{"type":"integer","minimum":1},"heartbeatIntervalMs":{"type":"integer","minimum":1},"maxInFlight":{"type":"integer","minimum":1}}},
		"acceptedClasses":{"type":"array","items":{"type":"string",` + classes + `}}}}`,
	"settingsValidate": `{` + closed + `,"required":["settings"],"properties":{"settings":{"type":"object"}}}`,
	"request": `{` + closed + `,"required":["requestId","operationId","idempotencyKey","attempt","deadlineUtc","capabilityId","operationName","operationVersion","permissionsGrantId","payloadClass","payload"],"properties":{
		"requestId":{"type":"string","format":"uuid"},"operationId":{"type":"string","format":"uuid"},"idempotencyKey":{"type":["string","null"],"minLength":1,"maxLength":256},
		"attempt":{"type":"integer","minimum":1},"deadlineUtc":{"type":["string","null"],"format":"date-time"},"capabilityId":{"type":"string"},"operationName":{"type":"string"},
		"operationVersion":{"type":"string",` + versionPattern + `},"permissionsGrantId":{"type":["string","null"]},"payloadClass":{"type":"string",` + classes + `},"payload":true,
		"stream":{` + closed + `,"properties":{"request":{"type":"boolean"},"response":{"type":"boolean"},"initialCreditItems":{"type":"integer","minimum":0},"initialCreditBytes":{"type":"integer","minimum":0}}},
		"diagnosticPolicy":{"type":"string","enum":["safe-default","safe-plus-hashes","explicit-debug"]},"retention":{"type":"string","enum":["none","ephemeral","short","audit"]},
		"secrets":{"type":"object","additionalProperties":{"type":"string"}}}}`,
	"error":        `{"type":"object","required":["code","message","retryable","blameDomain","severity","requestId","operationId"]}`,
	"streamItem":   `{` + closed + `,"required":["requestId","operationId","index","payload"],"properties":{"requestId":{"type":"string","format":"uuid"},"operationId":{"type":"string","format":"uuid"},"index":{"type":"integer","minimum":0},"payload":true}}`,
	"streamEnd":    `{` + closed + `,"required":["requestId","operationId","itemCount","byteCount"],"properties":{"requestId":{"type":"string","format":"uuid"},"operationId":{"type":"string","format":"uuid"},"itemCount":{"type":"integer","minimum":0},"byteCount":{"type":"integer","minimum":0}}}`,
	"flow":         `{` + closed + `,"required":["requestId","creditItems","creditBytes"],"properties":{"requestId":{"type":"string","format":"uuid"},"creditItems":{"type":"integer","minimum":0},"creditBytes":{"type":"integer","minimum":0}}}`,
	"cancel":       `{` + closed + `,"required":["requestId","reason"],"properties":{"requestId":{"type":"string","format":"uuid"},"reason":{"type":"string"}}}`,
	"healthCheck":  `{` + closed + `,"required":["watch"],"properties":{"watch":{"type":"boolean"}}}`,
	"heartbeat":    `{` + closed + `,"required":["nonce"],"properties":{"nonce":{"type":"string","minLength":1,"maxLength":128}}}`,
	"heartbeatAck": `{` + closed + `,"required":["nonce"],"properties":{"nonce":{"type":"string"}}}`,
	"receiptQuery": `{` + closed + `,"properties":{"receiptId":{"type":"string","format":"uuid"},"pluginId":{"type":"string"},"capabilityId":{"type":"string"},"operationName":{"type":"string"},"idempotencyKey":{"type":"string"}}}`,
	"goAway":       `{` + closed + `,"required":["lastAcceptedSequence","reason","graceMs"],"properties":{"lastAcceptedSequence":{"type":"integer","minimum":0},"reason":{"type":"string"},"graceMs":{"type":"integer","minimum":0}}}`,
}

// needed names the feature that a host's frame belongs to.
var needed = map[string]string{
	"settingsValidate": "settings.validate.v1", "streamItem": "flow.credit.v1", "streamEnd": "flow.credit.v1", "flow": "flow.credit.v1", "cancel": "cancel.v1",
	"heartbeat": "heartbeat.v1", "heartbeatAck": "heartbeat.v1", "receiptQuery": "receipt.v1",
}

// session serves one connection until its input ends.
func (p *program) session(in io.Reader, out io.Writer) error {
	m, err := p.load()
	if err != nil {
		return err
	}
	store, err := newStore(p, m)
	if err != nil {
		return err
	}
	if path := os.Getenv("SWITCHYARD_PLUGIN_SOCKET"); path != "" {
		conn, err := net.Dial("unix", path)
		if err != nil {
			return err
		}
		in, out = conn, conn
	}
	s := &session{p: p, m: m, out: out, enabled: map[string]bool{}, maxIn: 8 << 20, maxOut: 8 << 20, store: store, ops: map[string]*op{}, past: map[string]string{}, health: healthReport{"healthy", ""}}
	s.onTerminate()
	last, ids := uint64(0), map[string]bool{}
	for {
		frame, err := p.readFrame(in, s.maxIn)
		if err == io.EOF {
			return s.close()
		}
		var e *envelope
		if err == nil {
			e, err = p.scan(frame)
		}
		if err == nil {
			err = s.frame(e, &last, ids, len(frame))
		}
		var end *fatal
		if errors.As(err, &end) {
			if e != nil && end.causation == "" {
				end.causation = e.id
			}
			return s.die(end)
		}
	}
}

func (s *session) frame(e *envelope, last *uint64, ids map[string]bool, size int) error {
	if e.sequence <= *last && !s.p.has("takes-old-sequences") {
		return &fatal{code: "sequence.violation", message: "the sequence does not rise"}
	}
	if e.sequence != *last+1 && s.p.has("refuses-sequence-gaps") {
		return &fatal{code: "sequence.violation", message: "the sequence jumps"}
	}
	if *last == 0 && e.sequence != 1 {
		return &fatal{code: "sequence.violation", message: "the first sequence is 1"}
	}
	*last = e.sequence
	s.mu.Lock()
	s.looked = e.sequence
	s.mu.Unlock()
	e.id = strings.ToLower(e.id)
	if ids[e.id] && !s.p.has("takes-repeated-ids") {
		return &fatal{code: "envelope.invalid", message: "a messageId for the second time"}
	}
	ids[e.id] = true
	if s.version != "" && e.version != s.version && !s.p.has("takes-any-version") {
		return &fatal{code: "envelope.invalid", message: "a protocolVersion that was not agreed"}
	}
	return s.dispatch(e, size)
}

// die says why the connection ends.
func (s *session) die(f *fatal) error {
	blame := f.from
	if blame == "" {
		blame = "host"
	}
	extra := ""
	if f.supported && !s.p.has("tells-no-versions") {
		extra = fmt.Sprintf(`,"supportedProtocol":{"min":%s,"max":%s},"recommendedProtocolVersion":%s`, quote(s.m.minimum), quote(s.m.Protocol.MaxVersion), quote(f.recommended))
	}
	if !s.p.has("dies-without-a-word") {
		s.send("error", f.causation, fmt.Sprintf(`{"code":%s,"message":%s,"retryable":false,"blameDomain":%s,"severity":"fatal","requestId":null,"operationId":null%s}`,
			quote(f.code), quote(f.message), quote(blame), extra))
	}
	if s.p.has("survives-fatal-errors") {
		select {}
	}
	return f
}

// complain answers a frame that belongs to no request.
func (s *session) complain(e *envelope, code, message string) error {
	blame := "host"
	if code == "not_found" {
		blame = "caller"
	}
	s.send("error", e.id, fmt.Sprintf(`{"code":%s,"message":%s,"retryable":false,"blameDomain":%s,"severity":"error","requestId":null,"operationId":null}`, quote(code), quote(message), quote(blame)))
	return nil
}

// onTerminate ends the session in order when the process is asked to end.
func (s *session) onTerminate() {
	if s.p.has("dies-of-sigterm") {
		return
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	go func() {
		<-asked
		s.mu.Lock()
		s.leaving = true
		looked := s.looked
		s.mu.Unlock()
		if s.p.has("accepts-nothing") {
			looked = 0
		}
		s.send("goAway", "", fmt.Sprintf(`{"lastAcceptedSequence":%d,"reason":"asked to terminate","graceMs":1000}`, looked))
		done := make(chan struct{})
		go func() { s.working.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(time.Second):
			_ = s.close()
		}
		os.Exit(0)
	}()
}

// idle waits until nothing runs, or the time is up.
func (s *session) idle(within time.Duration) {
	done := make(chan struct{})
	go func() { s.working.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(within):
	}
}

// close ends what runs, because nobody listens any more.
func (s *session) close() error {
	if s.stage == draining && !s.p.has("gives-no-grace") {
		s.idle(s.grace)
	}
	s.mu.Lock()
	for _, o := range s.ops {
		o.cancel(errClosed)
	}
	s.mu.Unlock()
	if s.p.has("ignores-the-end-of-input") {
		select {}
	}
	s.idle(2 * time.Second)
	if s.p.has("exits-with-1") {
		return errors.New("done")
	}
	return nil
}

func (s *session) body(e *envelope, to any) *problem {
	schema := &schema{parse([]byte(bodySchemas[e.kind])).(map[string]any), &program{}}
	if s.p.has("takes-unknown-body-members") {
		schema.p = &program{faults: []string{"takes-unknown-members"}}
	}
	if s.p.has("tells-foreign-names") {
		schema.p = &program{faults: []string{"tells-foreign-names"}}
	}
	if p := schema.check(e.body); p != nil {
		return p
	}
	if err := json.Unmarshal(e.body, to); err != nil {
		return &problem{"schema.mismatch", "", "cannot be read"}
	}
	return nil
}

func (s *session) dispatch(e *envelope, size int) error {
	_, fromHost := bodySchemas[e.kind]
	switch {
	case !fromHost:
		return &fatal{code: "state.violation", message: "a frame that only plugins send"}
	case e.kind == "error":
		return s.hostError(e)
	case s.stage == negotiating && e.kind != "hello", s.stage != negotiating && e.kind == "hello" && !s.p.has("takes-second-hello"),
		s.stage == initializing && !slices.Contains([]string{"init", "heartbeat", "goAway"}, e.kind) && !s.p.has("serves-before-init"), s.stage > initializing && e.kind == "init" && !s.p.has("takes-second-init"):
		return &fatal{code: "state.violation", message: "a frame out of turn"}
	case needed[e.kind] != "" && !s.enabled[needed[e.kind]] && !s.p.has("serves-disabled-features"):
		return &fatal{code: "state.violation", message: "a frame of a feature that is not on"}
	}
	switch e.kind {
	case "hello":
		return s.hello(e)
	case "init":
		return s.initialize(e)
	case "settingsValidate":
		return s.settingsValidate(e)
	case "request":
		return s.request(e)
	case "streamItem", "streamEnd", "flow", "cancel":
		return s.toRequest(e, size)
	case "healthCheck":
		return s.healthCheck(e)
	case "heartbeat":
		var b struct{ Nonce string }
		if p := s.body(e, &b); p != nil {
			return s.complain(e, p.code, p.Error())
		}
		if s.p.has("echoes-no-nonce") {
			b.Nonce = "?"
		}
		if s.p.has("misses-heartbeats-while-busy") {
			s.mu.Lock()
			busy := len(s.ops) > 0
			s.mu.Unlock()
			if busy {
				return nil
			}
		}
		s.send("heartbeatAck", e.id, `{"nonce":`+quote(b.Nonce)+`}`)
	case "receiptQuery":
		return s.receiptQuery(e)
	case "goAway":
		var b struct{ GraceMs int64 }
		if p := s.body(e, &b); p != nil {
			return s.complain(e, p.code, p.Error())
		}
		s.grace = time.Duration(min(b.GraceMs, 2000)) * time.Millisecond
		if s.stage == ready {
			s.stage = draining
		}
		if s.p.has("drops-work-on-goaway") {
			s.mu.Lock()
			for _, o := range s.ops {
				o.cancel(errCancelled)
			}
			s.mu.Unlock()
		}
	}
	return nil
}

// hostError takes a host's error: a fatal one ends the session.
func (s *session) hostError(e *envelope) error {
	var b struct{ Severity string }
	if p := s.body(e, &b); p != nil {
		return s.complain(e, p.code, p.Error())
	}
	if b.Severity == "fatal" && !s.p.has("ignores-fatal-errors") {
		os.Exit(1)
	}
	return nil
}

func (s *session) hello(e *envelope) error {
	var b struct {
		Protocol           struct{ Min, Max string }
		Requires, Supports []string
		Codecs             []string
		MaxFrameBytes      int
	}
	if p := s.body(e, &b); p != nil {
		return &fatal{code: p.code, message: p.Error()}
	}
	low, high := max(minor(b.Protocol.Min), minor(s.m.minimum)), min(minor(b.Protocol.Max), minor(s.m.Protocol.MaxVersion))
	if s.p.has("downgrades-too-far") {
		low = max(minor(b.Protocol.Min), minor(s.m.Protocol.MinVersion))
	}
	sameMajor := strings.HasPrefix(b.Protocol.Min, "1.")
	if maxMajor, _, _ := strings.Cut(b.Protocol.Max, "."); sameMajor && maxMajor != "1" {
		high = minor(s.m.Protocol.MaxVersion)
	}
	if (!sameMajor || low > high) && !s.p.has("takes-any-protocol") {
		recommended := s.m.Protocol.MaxVersion
		if sameMajor && high < minor(s.m.minimum) || b.Protocol.Max[0] == '0' {
			recommended = s.m.minimum
		}
		return &fatal{code: "unsupported_protocol", message: "no version in common", supported: true, recommended: recommended, from: "plugin"}
	}
	if s.p.has("chooses-the-lowest") {
		high = low
	}
	version := fmt.Sprintf("1.%d", high)
	for _, f := range b.Requires {
		if !s.knows(f, version) && !s.p.has("ignores-requires") {
			return &fatal{code: "missing_required_feature", message: "a feature that is required is not offered", from: "plugin"}
		}
	}
	if !slices.Contains(b.Codecs, "json") && !s.p.has("ignores-codecs") {
		return &fatal{code: "missing_required_feature", message: "the only codec is json", from: "plugin"}
	}
	s.version = version
	features := []string{}
	for _, f := range s.m.Protocol.Features {
		named := slices.Contains(b.Supports, f) || slices.Contains(b.Requires, f)
		if s.p.has("ignores-what-is-supported") {
			named = true
		}
		if named && s.knows(f, version) {
			features = append(features, f)
			s.enabled[f] = true
		}
	}
	s.maxOut = min(s.maxOut, b.MaxFrameBytes)
	if s.p.has("ignores-frame-limit") {
		s.maxOut = 64 << 20
	}
	s.maxIn = min(s.maxIn, b.MaxFrameBytes)
	deprecations := s.m.Deprecations
	if deprecations == nil || s.p.has("hides-deprecations") {
		deprecations = []deprecation{}
	}
	sum := s.m.Provenance.ManifestDigest
	if s.p.has("tells-another-digest") {
		sum = "sha256:" + strings.Repeat("0", 64)
	}
	id := s.m.Plugin.PluginID
	if s.p.has("tells-another-identity") {
		id = "org.example.other"
	}
	version = s.version
	s.send("helloAck", e.id, fmt.Sprintf(`{"protocolVersion":%s,"enabledFeatures":%s,"requires":%s,"codec":"json","maxFrameBytes":%d,"manifestDigest":%s,"plugin":{"pluginId":%s,"publisherId":%s,"packageVersion":%s},"deprecations":%s}`,
		quote(version), text(features), text(s.m.requires), s.maxIn, quote(sum), quote(id), quote(s.m.Publisher.PublisherID), quote(s.m.PackageVersion), text(deprecations)))
	s.stage = initializing
	return nil
}

var since = map[string]int{
	"health.watch.v1": 0, "transport.unix.v1": 0, "cancel.v1": 1, "progress.v1": 1, "flow.credit.v1": 1,
	"receipt.v1": 2, "heartbeat.v1": 2, "secrets.inject.v1": 2, "settings.validate.v1": 2,
}

// knows reports whether the plugin can do a feature in a version.
func (s *session) knows(feature, version string) bool {
	from, known := since[feature]
	return known && slices.Contains(s.m.Protocol.Features, feature) && (from <= minor(version) || s.p.has("ignores-feature-versions"))
}

func (s *session) initialize(e *envelope) error {
	var b initBody
	if p := s.body(e, &b); p != nil {
		return &fatal{code: p.code, message: p.Error()}
	}
	if canonicalDigest(b.Settings) != b.SettingsDigest && !s.p.has("ignores-settings-digest") {
		return &fatal{code: "invalid_argument", message: "settingsDigest is not that of the settings"}
	}
	if _, problems, p := s.validate(b.Settings); (p != nil || len(problems) > 0) && !s.p.has("takes-bad-settings") {
		if p != nil {
			return &fatal{code: p.code, message: "the settings are refused: " + p.Error()}
		}
		return &fatal{code: "invalid_argument", message: "the settings are refused"}
	}
	s.init = b
	status, message := "ready", ""
	if s.settings().Mode == "degraded" && !s.p.has("hides-degraded") {
		s.health = healthReport{"degraded", "degraded by settings"}
		status, message = "degraded", `,"message":"degraded by settings"`
	}
	type declared struct {
		Name             string `json:"name"`
		OperationVersion string `json:"operationVersion"`
	}
	type capability struct {
		ID         string     `json:"id"`
		Version    string     `json:"version"`
		Operations []declared `json:"operations"`
	}
	capabilities := []capability{}
	for _, c := range s.m.Capabilities {
		x := capability{c.ID, c.Version, []declared{}}
		for _, o := range c.Operations {
			x.Operations = append(x.Operations, declared{o.Name, o.OperationVersion})
		}
		capabilities = append(capabilities, x)
	}
	if s.p.has("hides-a-capability") {
		capabilities = capabilities[1:]
	}
	s.send("initAck", e.id, fmt.Sprintf(`{"status":%s%s,"capabilities":%s}`, quote(status), message, text(capabilities)))
	s.stage = ready
	return nil
}

// settings as the handlers see them, with the defaults that readers apply.
func (s *session) settings() (v struct {
	Greeting, Mode string
	Retries        int
}) {
	v.Retries = 3
	_ = json.Unmarshal(s.init.Settings, &v) // they were validated
	v.Greeting = strings.Trim(v.Greeting, " ")
	return v
}

// validate holds settings to their schema and to the plugin's own check.
func (s *session) validate(settings json.RawMessage) (normalized string, problems []string, p *problem) {
	if p := s.m.schemas[s.m.Settings.Schema.URI].check(settings); p != nil {
		return "", []string{fmt.Sprintf(`{"path":%s,"message":%s}`, quote(p.path), quote(p.message))}, p
	}
	list := parse(settings).(map[string]any)
	greeting := strings.Trim(list["greeting"].(string), " ")
	if greeting == "" || greeting == "forbidden" {
		return "", []string{`{"path":"/greeting","message":"this greeting is not allowed"}`}, nil
	}
	if !s.p.has("normalizes-nothing") {
		list["greeting"] = greeting
		if list["retries"] == nil {
			list["retries"] = 3
		}
	}
	return text(list), nil, nil
}

func (s *session) settingsValidate(e *envelope) error {
	var b struct{ Settings json.RawMessage }
	if p := s.body(e, &b); p != nil {
		return s.complain(e, p.code, p.Error())
	}
	normalized, problems, _ := s.validate(b.Settings)
	if s.p.has("finds-every-setting-valid") {
		problems = nil
	}
	if len(problems) > 0 {
		s.send("settingsValidated", e.id, `{"valid":false,"problems":[`+strings.Join(problems, ",")+`]}`)
		return nil
	}
	s.send("settingsValidated", e.id, `{"valid":true,"normalized":`+normalized+`,"problems":[]}`)
	return nil
}

func (s *session) healthCheck(e *envelope) error {
	var b struct{ Watch bool }
	if p := s.body(e, &b); p != nil {
		return s.complain(e, p.code, p.Error())
	}
	if b.Watch && !s.enabled["health.watch.v1"] {
		return &fatal{code: "state.violation", message: "health.watch.v1 is not on"}
	}
	s.mu.Lock()
	if b.Watch && !s.p.has("forgets-the-watch") {
		s.watching = e.id
	}
	report := s.health
	s.mu.Unlock()
	s.report(report, e.id)
	return nil
}

func (s *session) report(h healthReport, causation string) {
	message := ""
	if h.message != "" {
		message = `,"message":` + quote(h.message)
	}
	s.send("health", causation, fmt.Sprintf(`{"status":%s%s,"updatedAtUtc":%s}`, quote(h.status), message, quote(now())))
}

// setHealth is what a handler tells; a watch is told when it changes.
func (s *session) setHealth(h healthReport) {
	s.mu.Lock()
	changed := s.health != h
	s.health = h
	watch := s.watching
	s.mu.Unlock()
	if (changed || s.p.has("repeats-health")) && watch != "" {
		s.report(h, "")
	}
}

func now() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000000Z") }

// permissions returns the ids of what is granted and has not expired, sorted.
func (s *session) permissions() []string {
	list := []string{}
	for _, g := range s.init.Grants {
		if g.ExpiresAtUtc == nil || g.ExpiresAtUtc.After(time.Now()) {
			list = append(list, g.PermissionID)
		}
	}
	sort.Strings(list)
	return list
}
