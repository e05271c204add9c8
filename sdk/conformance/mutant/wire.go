package mutant

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/ijson"
)

// A fatal ends the connection with a code.
type fatal struct {
	code, message string
	causation     string // messageId of the frame, "" if it could not be read
	supported     bool   // tell the versions
	recommended   string // of them
	from          string // blame
}

func (f *fatal) Error() string { return f.code + ": " + f.message }

// readFrame reads one frame of at most limit bytes. io.EOF is the orderly end.
func (p *program) readFrame(r io.Reader, limit int) ([]byte, error) {
	var prefix [4]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) && !p.has("takes-truncated-frames") {
			return nil, &fatal{code: "frame.invalid", message: "the input ends within a length"}
		}
		return nil, io.EOF
	}
	n := int32(binary.BigEndian.Uint32(prefix[:]))
	switch {
	case n < 0 && p.has("negative-length-is-large"):
		return nil, &fatal{code: "frame.too_large", message: "a negative length"}
	case n < 0:
		return nil, &fatal{code: "frame.invalid", message: "a negative length"}
	case n == 0 && p.has("skips-empty-frames"):
		return p.readFrame(r, limit)
	case n == 0:
		return nil, &fatal{code: "frame.invalid", message: "an empty frame"}
	case int(n) > limit && !p.has("takes-large-frames"):
		return nil, &fatal{code: "frame.too_large", message: "a frame larger than agreed"}
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		if p.has("takes-truncated-frames") {
			return nil, io.EOF
		}
		return nil, &fatal{code: "frame.invalid", message: "the input ends within a frame"}
	}
	return text, nil
}

// An envelope is a frame that was received.
type envelope struct {
	version, kind, id string
	trace             string // JSON
	sequence          uint64
	body              json.RawMessage
}

var (
	traceForm     = regexp.MustCompile(`^[0-9a-f]{32}$`)
	versionForm   = regexp.MustCompile(`^\d+\.\d+$`)
	namespaceForm = regexp.MustCompile(`^[a-z0-9]+(\.[a-z0-9-]+)+$`)
	baseMembers   = []string{"protocolVersion", "messageType", "messageId", "sequence", "timestampUtc", "traceId", "causationId", "extensions"}
	kinds         = []string{
		"hello", "helloAck", "init", "initAck", "settingsValidate", "settingsValidated", "request", "response", "error", "progress", "streamItem", "streamEnd",
		"flow", "cancel", "cancelAck", "cancelled", "healthCheck", "health", "heartbeat", "heartbeatAck", "receiptQuery", "receipt", "goAway",
	}
)

// scan reads an envelope strictly.
func (p *program) scan(frame []byte) (*envelope, error) {
	if err := ijson.Check(frame); err != nil {
		var fault *ijson.Error
		errors.As(err, &fault)
		if !p.has("takes-" + strings.ReplaceAll(strings.TrimPrefix(fault.Code, "json."), "_", "-")) {
			return nil, &fatal{code: fault.Code, message: "the frame breaks a rule of its values"}
		}
	}
	e := &envelope{}
	invalid := func(format string, args ...any) (*envelope, error) {
		return nil, &fatal{code: "envelope.invalid", message: fmt.Sprintf(format, args...), causation: e.id}
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(frame, &m) != nil || m == nil {
		return invalid("the frame is no object")
	}
	str := func(name string) string {
		var s string
		if m[name] == nil || m[name][0] != '"' || json.Unmarshal(m[name], &s) != nil {
			return ""
		}
		return s
	}
	if id := str("messageId"); uuidForm.MatchString(id) {
		e.id = id
	}
	for _, name := range baseMembers {
		if m[name] == nil && !(name == "extensions" && p.has("takes-missing-extensions")) {
			return invalid("%s is missing", name)
		}
	}
	e.version, e.kind = str("protocolVersion"), str("messageType")
	switch {
	case !versionForm.MatchString(e.version):
		return invalid("protocolVersion")
	case !slices.Contains(kinds, e.kind):
		return invalid("messageType")
	case e.id == "":
		return invalid("messageId")
	case !p.format("date-time", str("timestampUtc")) && !p.has("takes-bad-timestamps"):
		return invalid("timestampUtc")
	case string(m["traceId"]) != "null" && !traceForm.MatchString(str("traceId")):
		return invalid("traceId")
	case string(m["causationId"]) != "null" && !uuidForm.MatchString(str("causationId")):
		return invalid("causationId")
	}
	n, err := strconv.ParseUint(string(m["sequence"]), 10, 53)
	if err != nil || n == 0 {
		return invalid("sequence")
	}
	e.sequence, e.trace = n, string(m["traceId"])
	for name := range m {
		if name != e.kind && !slices.Contains(baseMembers, name) && !p.has("takes-unknown-envelope-members") {
			return invalid("a member that is not known")
		}
	}
	if e.body = m[e.kind]; e.body == nil {
		return invalid("the body is missing")
	}
	if x := m["extensions"]; x != nil {
		var extensions map[string]json.RawMessage
		if x[0] != '{' || json.Unmarshal(x, &extensions) != nil {
			return invalid("extensions are no object")
		}
		if len(x) > 16<<10 && !p.has("takes-large-extensions") {
			return invalid("extensions are larger than 16 KiB")
		}
		for name := range extensions {
			if p.has("refuses-extensions") || !namespaceForm.MatchString(name) && !p.has("takes-any-namespace") {
				return invalid("an extension's name")
			}
		}
	}
	return e, nil
}

// send writes one frame; body is its body's JSON.
func (s *session) send(kind, causation, body string) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.write(s.compose(kind, causation, body, "null"))
}

// compose makes the next frame and counts it; writing is held.
func (s *session) compose(kind, causation, body, trace string) string {
	s.sequence++
	if s.p.has("sequence-skips") && s.sequence == 4 {
		s.sequence++
	}
	if s.p.has("sequence-stays") && s.sequence > 3 {
		s.sequence = 3
	}
	id := newUUID(s.p)
	if s.p.has("message-id-repeats") {
		if s.lastID == "" {
			s.lastID = id
		}
		id = s.lastID
	}
	cause := "null"
	if causation != "" && !s.p.has("forgets-causation") {
		cause = quote(causation)
	}
	version := s.version
	if version == "" {
		version = "1.2"
	}
	if s.p.has("answers-with-its-own-version") {
		version = "1.2"
	}
	layout := "2006-01-02T15:04:05.000000Z"
	if s.p.has("writes-nanoseconds") {
		layout = "2006-01-02T15:04:05.000000000Z"
	}
	extra := ""
	if s.p.has("writes-unknown-members") {
		extra = `"note":"",`
	}
	return fmt.Sprintf(`{"protocolVersion":%s,"messageType":%s,"messageId":%s,"sequence":%d,"timestampUtc":%s,"traceId":%s,"causationId":%s,%s:%s,%s"extensions":{}}`,
		quote(version), quote(kind), quote(id), s.sequence, quote(time.Now().UTC().Format(layout)), trace, cause, quote(kind), body, extra)
}

// write sends a composed frame; writing is held.
func (s *session) write(text string) {
	_, _ = s.out.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)) // a host that has gone closes the input too
}

func quote(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err) // a string can be encoded
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func optional(s string) string {
	if s == "" {
		return "null"
	}
	return quote(s)
}

func newUUID(p *program) string {
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		panic(err) // crypto/rand never fails
	}
	var at [8]byte
	binary.BigEndian.PutUint64(at[:], uint64(time.Now().UnixMilli()))
	copy(id[:6], at[2:])
	id[6], id[8] = 0x70|id[6]&0x0f, 0x80|id[8]&0x3f
	if p.has("makes-random-uuids") {
		id[6] = 0x40 | id[6]&0x0f
	}
	h := hex.EncodeToString(id[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func canonicalDigest(text []byte) string {
	canonical, err := digest.Canonical(text)
	if err != nil {
		return ""
	}
	return string(digest.Of(canonical))
}
