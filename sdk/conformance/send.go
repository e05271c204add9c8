package conformance

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// bodies are what the runner sends of each type where a case says nothing else.
var bodies = lazy[map[string]string]{make: func() map[string]string {
	return map[string]string{
		"hello": `{"hostVersion":"1.0.0","protocol":{"min":"1.0","max":"1.2"},"requires":[],` +
			`"supports":["health.watch.v1","cancel.v1","progress.v1","flow.credit.v1","receipt.v1","heartbeat.v1","secrets.inject.v1","settings.validate.v1"],"codecs":["json"],"maxFrameBytes":8388608}`,
		"init": `{"instanceId":$uuid,"grants":[{"permissionsGrantId":"grant-files","permissionId":"files","scope":"filesystem.read"},` +
			`{"permissionsGrantId":"grant-private","permissionId":"private","scope":"bounded.private-data"}],"settings":{"greeting":"hello"},"settingsDigest":null,` +
			`"limits":{"requestTimeoutMs":30000,"heartbeatIntervalMs":60000,"maxInFlight":64},"acceptedClasses":["public","internal","sensitive"]}`,
		"settingsValidate": `{"settings":{"greeting":"hello"}}`,
		"request": `{"requestId":$uuid,"operationId":$uuid,"idempotencyKey":null,"attempt":1,"deadlineUtc":null,"capabilityId":"conformance.basic","operationName":"echo",` +
			`"operationVersion":"1.0","permissionsGrantId":"grant-files","payloadClass":"internal","payload":{"value":1}}`,
		"settingsValidated": `{"valid":true,"problems":[]}`,
		"response":          `{"requestId":$uuid,"operationId":$uuid,"payloadClass":"internal","payload":{"value":1}}`,
		"error":             `{"code":"internal","message":"the host has a fault","retryable":false,"blameDomain":"host","severity":"fatal","requestId":null,"operationId":null}`,
		"progress":          `{"requestId":$uuid,"operationId":$uuid,"message":"hm"}`,
		"streamItem":        `{"requestId":$uuid,"operationId":$uuid,"index":0,"payload":{"n":1}}`,
		"streamEnd":         `{"requestId":$uuid,"operationId":$uuid,"itemCount":0,"byteCount":0}`,
		"flow":              `{"requestId":$uuid,"creditItems":1,"creditBytes":65536}`,
		"cancel":            `{"requestId":$uuid,"reason":"the case says so"}`,
		"cancelAck":         `{"requestId":$uuid}`,
		"cancelled":         `{"requestId":$uuid,"operationId":$uuid}`,
		"healthCheck":       `{"watch":false}`,
		"health":            `{"status":"healthy","updatedAtUtc":$now}`,
		"heartbeat":         `{"nonce":"n-1"}`,
		"heartbeatAck":      `{"nonce":"n-1"}`,
		"receiptQuery":      `{"receiptId":$uuid}`,
		"goAway":            `{"lastAcceptedSequence":0,"reason":"the host shuts down","graceMs":1000}`,
		"helloAck":          `{"protocolVersion":"1.2"}`,
		"initAck":           `{"status":"ready","capabilities":[]}`,
		"receipt":           `{}`,
	}
}}

// send builds a frame from its defaults and the case's edits, and sends it. An
// edit whose path begins with @ changes the envelope; @length replaces the
// prefix, @body the body's name. before changes the body ahead of the edits.
func (r *run) send(kind string, edits []edit, before func(body []member) ([]member, error)) error {
	if err := r.ensure(); err != nil {
		return err
	}
	text, err := r.vars.expand(bodies.get()[kind])
	if err != nil {
		return err
	}
	body := []member{}
	if text != "" {
		if body, err = members(text); err != nil {
			return err
		}
	}
	if r.own != nil && kind == "init" { // a grant and a setting of the corpus's package mean nothing to another
		for _, e := range []edit{{path: "grants", text: r.own.grants}, {path: "settings", text: r.own.settings}} {
			if body, err = set(body, e.path, e.text); err != nil {
				return err
			}
		}
	}
	if before != nil {
		if body, err = before(body); err != nil {
			return err
		}
	}
	var envelope []edit
	for _, e := range edits {
		value, err := r.vars.expand(e.text)
		if err != nil {
			return fmt.Errorf("line %d: %w", e.line, err)
		}
		if strings.HasPrefix(e.path, "@") {
			envelope = append(envelope, edit{e.line, e.path[1:], value})
			continue
		}
		if body, err = set(body, e.path, value); err != nil {
			return fmt.Errorf("line %d: %w", e.line, err)
		}
	}
	if kind == "init" {
		if body, err = settingsDigest(body); err != nil {
			return err
		}
	}
	return r.envelop(kind, object(body), envelope)
}

// settingsDigest fills in the digest of the settings where the case gives none.
func settingsDigest(body []member) ([]member, error) {
	var settings string
	for _, m := range body {
		if m.name == "settings" {
			settings = m.text
		}
		if m.name == "settingsDigest" && m.text == "null" {
			sum := digest.Of([]byte(settings))
			if canonical, err := digest.Canonical([]byte(settings)); err == nil {
				sum = digest.Of(canonical) // else the case sends settings that are no JSON
			}
			return set(body, "settingsDigest", quote(string(sum)))
		}
	}
	return body, nil
}

func (r *run) envelop(kind, body string, edits []edit) error {
	id := newUUID()
	r.conn.sent++
	now, err := r.vars.expand("$now")
	if err != nil {
		return err
	}
	list := []member{
		{"protocolVersion", quote(r.conn.version)}, {"messageType", quote(kind)}, {"messageId", quote(id)},
		{"sequence", strconv.FormatUint(r.conn.sent, 10)}, {"timestampUtc", now}, {"traceId", "null"}, {"causationId", "null"}, {kind, body}, {"extensions", "{}"},
	}
	length := -1
	for _, e := range edits {
		switch e.path {
		case "length":
			if length, err = strconv.Atoi(e.text); err != nil {
				return fmt.Errorf("line %d: %w", e.line, err)
			}
			continue
		case "body":
			for i, m := range list {
				if m.name == kind {
					list[i].name = strings.Trim(e.text, `"`)
				}
			}
			continue
		}
		if list, err = set(list, e.path, e.text); err != nil {
			return fmt.Errorf("line %d: %w", e.line, err)
		}
	}
	for _, m := range list {
		switch m.name {
		case "messageId":
			id = strings.Trim(m.text, `"`)
		case "sequence":
			if n, err := strconv.ParseUint(m.text, 10, 53); err == nil {
				r.conn.sent = n
			}
		}
	}
	for _, m := range list {
		if m.name == "traceId" {
			r.vars["sent.traceId"] = m.text
		}
	}
	r.vars["sent.messageId"], r.vars["sent.sequence"] = quote(id), strconv.FormatUint(r.conn.sent, 10)
	r.conn.asked[id] = kind
	text := object(list)
	r.lastSize = int64(len(text))
	data := framed(text)
	if length >= 0 {
		binary.BigEndian.PutUint32(data, uint32(length))
	}
	r.traced("->", text)
	return r.write(data)
}

// write sends bytes as they are. That nobody reads them any more is left for
// the expectations to notice.
func (r *run) write(data []byte) error {
	if err := r.ensure(); err != nil {
		return err
	}
	_ = r.p.write(data)
	return nil
}

// takeLabel splits "LABEL: rest" or "LABEL rest".
func takeLabel(text string, labels []string) (name, rest string) {
	first, rest, _ := strings.Cut(text, " ")
	for _, l := range labels {
		if first == l {
			return l, strings.TrimSpace(rest)
		}
	}
	return defaultLabel, text
}

// declared splits the "LABEL: " off a call.
func declared(text string) (name, rest string) {
	first, rest, ok := strings.Cut(text, ": ")
	if ok && !strings.ContainsAny(first, " {\"") {
		return first, strings.TrimSpace(rest)
	}
	return defaultLabel, text
}

func (r *run) label(name string) (*label, error) {
	l, ok := r.labels[name]
	if !ok {
		return nil, fmt.Errorf("no call is named %s", name)
	}
	return l, nil
}

func (r *run) names() []string {
	list := []string{connectionLabel}
	for name := range r.labels {
		list = append(list, name)
	}
	return list
}

// call sends a request for an operation of the package.
func (r *run) call(s step) error {
	name, rest := declared(s.text)
	opName, payload, _ := strings.Cut(rest, " ")
	if err := r.ensure(); err != nil {
		return err
	}
	op, ok := r.ops[opName]
	if !ok {
		return fmt.Errorf("the package has no operation %q", opName)
	}
	l := &label{name: name, requestID: newUUID(), operationID: newUUID(), op: op, cancels: map[string]bool{}}
	payload, err := r.vars.expand(payload)
	if err != nil {
		return err
	}
	if payload == "" {
		payload = "{}"
		if op.streamsIn {
			payload = "null"
		}
	}
	stream := ""
	switch {
	case op.streamsIn && op.streamsOut:
		stream = `{"request":true,"response":true,"initialCreditItems":16,"initialCreditBytes":262144}`
	case op.streamsIn:
		stream = `{"request":true}`
	case op.streamsOut:
		stream = `{"response":true,"initialCreditItems":16,"initialCreditBytes":262144}`
	}
	var body []member
	err = r.send("request", s.edits, func(list []member) ([]member, error) {
		for _, e := range [][2]string{
			{"requestId", quote(l.requestID)}, {"operationId", quote(l.operationID)}, {"capabilityId", quote(op.capability)},
			{"operationName", quote(op.name)}, {"operationVersion", quote(op.version)}, {"payload", payload},
		} {
			var err error
			if list, err = set(list, e[0], e[1]); err != nil {
				return nil, err
			}
		}
		if stream != "" {
			list = append(list, member{"stream", stream})
		}
		// What the edits make of these is needed to follow the answers.
		body = append(body, list...)
		for _, e := range s.edits {
			if strings.HasPrefix(e.path, "@") || strings.HasSuffix(e.path, "+") {
				continue
			}
			value, err := r.vars.expand(e.text)
			if err != nil {
				return nil, err
			}
			// A case may spoil a body so that only its text can tell; then nothing follows from it.
			if changed, err := set(body, e.path, value); err == nil {
				body = changed
			}
		}
		l.follow(body)
		r.labels[name], r.requests[l.requestID] = l, l
		return list, nil
	})
	if err != nil {
		return err
	}
	l.trace = r.vars["sent.traceId"]
	l.messageID = strings.Trim(r.vars["sent.messageId"], `"`)
	for variable, value := range map[string]string{"requestId": l.requestID, "operationId": l.operationID, "messageId": l.messageID} {
		r.vars[name+"."+variable] = quote(value)
	}
	r.vars[name+".sequence"] = r.vars["sent.sequence"]
	return nil
}

// follow takes from a request's body what its answers will be held to.
func (l *label) follow(body []member) {
	for _, m := range body {
		switch text := strings.Trim(m.text, `"`); m.name {
		case "requestId":
			l.requestID = text
		case "operationId":
			l.operationID = text
		case "payload":
			l.payload = m.text
		case "stream":
			l.items, l.bytes = max(0, number([]byte(m.text), "initialCreditItems")), max(0, number([]byte(m.text), "initialCreditBytes"))
		}
	}
}

// cancel sends a cancel of a request.
func (r *run) cancel(s step) error {
	name, reason := takeLabel(s.text, r.names())
	l, err := r.label(name)
	if err != nil {
		return err
	}
	edits := s.edits
	if reason != "" {
		edits = append([]edit{{path: "reason", text: reason}}, edits...)
	}
	err = r.send("cancel", edits, func(body []member) ([]member, error) { return set(body, "requestId", quote(l.requestID)) })
	l.cancels[strings.Trim(r.vars["sent.messageId"], `"`)] = true
	return err
}

// credit sends a flow that gives items and bytes.
func (r *run) credit(s step) error {
	name, rest := takeLabel(s.text, r.names())
	l, err := r.label(name)
	if err != nil {
		return err
	}
	var items, bytes int64
	if n, _ := fmt.Sscanf(rest, "%d %d", &items, &bytes); n != 2 {
		return errors.New("want the items and the bytes")
	}
	return r.grant(l, items, bytes, s.edits)
}

func (r *run) grant(l *label, items, bytes int64, edits []edit) error {
	l.items, l.bytes = l.items+items, l.bytes+bytes
	if l.items >= 0 && l.bytes >= 0 {
		l.overdrawn = false
	}
	return r.send("flow", edits, func([]member) ([]member, error) {
		return []member{{"requestId", quote(l.requestID)}, {"creditItems", fmt.Sprint(items)}, {"creditBytes", fmt.Sprint(bytes)}}, nil
	})
}

// itemOverhead is what an item's frame has at most beside its payload.
const itemOverhead = 480

// item sends the next item of a request's stream, once the program has given the
// credit for it; the edit "unpaid true" sends it at once.
func (r *run) item(s step) error {
	name, payload := takeLabel(s.text, r.names())
	l, err := r.label(name)
	if err != nil {
		return err
	}
	var edits []edit
	paid := true
	for _, e := range s.edits {
		if e.path == "unpaid" {
			paid = false
			continue
		}
		edits = append(edits, e)
	}
	if payload, err = r.vars.expand(payload); err != nil {
		return err
	}
	size := int64(len(payload)) + itemOverhead
	if paid {
		if err := r.await(func() bool { return l.ourItems >= 1 && l.ourBytes >= size || l.terminal != "" }, fmt.Sprintf("a flow with credit for an item of %d bytes", size)); err != nil {
			return err
		}
	}
	index := l.sentItems
	err = r.send("streamItem", edits, func([]member) ([]member, error) {
		return []member{{"requestId", quote(l.requestID)}, {"operationId", quote(l.operationID)}, {"index", fmt.Sprint(index)}, {"payload", payload}}, nil
	})
	l.sentItems++
	l.sentBytes += r.lastSize
	l.ourItems, l.ourBytes = l.ourItems-1, l.ourBytes-r.lastSize
	return err
}

// finish sends the streamEnd of a request's stream.
func (r *run) finish(s step) error {
	name, _ := takeLabel(s.text, r.names())
	l, err := r.label(name)
	if err != nil {
		return err
	}
	return r.send("streamEnd", s.edits, func([]member) ([]member, error) {
		return []member{{"requestId", quote(l.requestID)}, {"operationId", quote(l.operationID)}, {"itemCount", fmt.Sprint(l.sentItems)}, {"byteCount", fmt.Sprint(l.sentBytes)}}, nil
	})
}
