package wire

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/internal/strict"
)

// An Envelope is one message. Extensions and Body are JSON as it was sent, parts
// of the frame that Scan read.
type Envelope struct {
	Version     Version
	Type        MessageType
	MessageID   UUID
	Sequence    uint64
	Timestamp   time.Time
	TraceID     TraceID
	CausationID NullUUID
	Extensions  json.RawMessage
	Body        json.RawMessage

	item     StreamItem // of a streamItem that Scan has read whole
	itemRead bool
}

// The base members, as bits.
const (
	hasVersion = 1 << iota
	hasType
	hasMessageID
	hasSequence
	hasTimestamp
	hasTraceID
	hasCausationID
	hasExtensions
	hasAll = 1<<iota - 1
)

var baseNames = [...]string{"protocolVersion", "messageType", "messageId", "sequence", "timestampUtc", "traceId", "causationId", "extensions"}

// Scan reads the JSON of one frame into e, whose parts then belong to frame. It
// goes over the frame once and copies nothing.
//
// The error is a *Fault, always a fatal one: a code of the value rules, which
// hold for the whole frame, or envelope.invalid. Where a frame breaks both, the
// value rule is the answer. What e holds after an error is only fit for naming
// the frame: MessageID is set if it could be read.
func Scan(frame []byte, e *Envelope) error {
	*e = Envelope{}
	if plain(frame, e) {
		return nil
	}
	s := scan{Scanner: strict.Scanner{Data: frame}}
	err := s.message()
	*e = s.e
	return err
}

// message reads the whole frame.
func (s *scan) message() error {
	if err := s.Begin(); err != nil {
		return asFault(s.Verdict(err))
	}
	s.Space()
	if !s.At('{') {
		if err := s.Value(); err != nil {
			return asFault(s.Verdict(err))
		}
		if err := s.End(); err != nil {
			return asFault(s.Verdict(err))
		}
		return faultf(CodeEnvelopeInvalid, 0, "a message must be an object")
	}
	object, more, err := s.Open()
	for more {
		if err = s.member(&object); err != nil {
			break
		}
		more, err = s.More(&object)
	}
	if err == nil {
		err = s.End()
	}
	if err != nil {
		return asFault(s.Verdict(err))
	}
	return s.verdict()
}

// A scan is the reading of one envelope.
type scan struct {
	strict.Scanner
	e       Envelope
	has     int
	body    []byte // the name of the first member that is not a base member
	escaped bool   // body holds escapes
	bodyAt  int
	more    int    // where the second such member is, or 0
	fault   *Fault // the first fault of the envelope
}

// member reads one member of the envelope. The error is one of the value rules.
func (s *scan) member(o *strict.Open) error {
	s.Space()
	at := s.Pos
	raw, escaped, err := s.Name(o)
	if err != nil {
		return err
	}
	s.Space()
	start := s.Pos
	name := strict.Unescape(raw, escaped)
	switch string(name) {
	case "protocolVersion":
		s.has |= hasVersion
		return s.text(start, baseNames[0], `must be a version as "1.0"`, func(t []byte) (ok bool) {
			s.e.Version, ok = parseVersion(t)
			return ok
		})
	case "messageType":
		s.has |= hasType
		return s.text(start, baseNames[1], "is not known", func(t []byte) bool {
			s.e.Type = typeNamed(t)
			return s.e.Type != ""
		})
	case "messageId":
		s.has |= hasMessageID
		return s.text(start, baseNames[2], "must be a UUID", func(t []byte) (ok bool) {
			s.e.MessageID, ok = parseUUID(t)
			return ok
		})
	case "sequence":
		s.has |= hasSequence
		if err := s.Value(); err != nil {
			return err
		}
		n, ok := parseInteger(frameValue(s, start))
		if !ok || n < 1 {
			s.invalid(start, "sequence must be an integer from 1 on")
			return nil
		}
		s.e.Sequence = uint64(n)
		return nil
	case "timestampUtc":
		s.has |= hasTimestamp
		return s.text(start, baseNames[4], "must be a time as 2006-01-02T15:04:05.999999Z", func(t []byte) (ok bool) {
			s.e.Timestamp, ok = parseTime(t)
			return ok
		})
	case "traceId":
		s.has |= hasTraceID
		if s.At('n') {
			return s.Value()
		}
		return s.text(start, baseNames[5], "must be 32 hexadecimal digits or null", func(t []byte) (ok bool) {
			s.e.TraceID, ok = parseTraceID(t)
			return ok
		})
	case "causationId":
		s.has |= hasCausationID
		if s.At('n') {
			return s.Value()
		}
		return s.text(start, baseNames[6], "must be a UUID or null", func(t []byte) bool {
			s.e.CausationID.UUID, s.e.CausationID.Set = parseUUID(t)
			return s.e.CausationID.Set
		})
	case "extensions":
		s.has |= hasExtensions
		return s.extensions(start)
	}
	switch {
	case s.body == nil:
		s.body, s.escaped, s.bodyAt = raw, escaped, at
		if err := s.Value(); err != nil {
			return err
		}
		s.e.Body = frameValue(s, start)
		return nil
	case s.more == 0:
		s.more = at
	}
	return s.Value()
}

func frameValue(s *scan, start int) []byte { return s.Data[start:s.Pos:s.Pos] }

// text reads a string and gives it to read, which reports whether it is good.
func (s *scan) text(start int, name, rule string, read func([]byte) bool) error {
	if !s.At('"') {
		if err := s.Value(); err != nil {
			return err
		}
		s.invalid(start, "%s %s", name, rule)
		return nil
	}
	raw, escaped, err := s.Text()
	if err != nil {
		return err
	}
	if !read(strict.Unescape(raw, escaped)) {
		s.invalid(start, "%s %s", name, rule)
	}
	return nil
}

// extensions reads the one place where unknown members may stand.
func (s *scan) extensions(start int) error {
	if !s.At('{') {
		if err := s.Value(); err != nil {
			return err
		}
		s.invalid(start, "extensions must be an object")
		return nil
	}
	o, more, err := s.Open()
	for more && err == nil {
		at := s.Pos
		var raw []byte
		var escaped bool
		if raw, escaped, err = s.Name(&o); err != nil {
			return err
		}
		if !reverseDNS(strict.Unescape(raw, escaped)) {
			s.invalid(at, "the names in extensions must be reverse-DNS namespaces as com.example.trace")
		}
		if err = s.Value(); err != nil {
			return err
		}
		more, err = s.More(&o)
	}
	if err != nil {
		return err
	}
	if s.Pos-start > MaxExtensions {
		s.invalid(start, "extensions has more than %d bytes", MaxExtensions)
	}
	s.e.Extensions = frameValue(s, start)
	return nil
}

// invalid keeps the first fault of the envelope.
func (s *scan) invalid(at int, format string, args ...any) {
	if s.fault == nil {
		s.fault = faultf(CodeEnvelopeInvalid, at, format, args...)
	}
}

// verdict judges the envelope once the whole frame is known to be sound JSON.
func (s *scan) verdict() error {
	if s.fault == nil && s.has != hasAll {
		for i, name := range baseNames {
			if s.has&(1<<i) == 0 {
				s.invalid(0, "%s is required", name)
			}
		}
	}
	if s.fault == nil {
		switch name := strict.Unescape(s.body, s.escaped); {
		case s.body == nil:
			s.invalid(0, "the member %s is required in a message of this type", s.e.Type)
		case string(name) != string(s.e.Type):
			s.invalid(s.bodyAt, "the unknown member %s in a message of type %s", strict.Quote(string(name)), s.e.Type)
		case s.more > 0:
			s.invalid(s.more, "a member beside %s that is not known", s.e.Type)
		}
	}
	if s.fault != nil {
		return s.fault
	}
	return nil
}

// reverseDNS reports whether a name matches ^[a-z0-9]+(\.[a-z0-9-]+)+$.
func reverseDNS(name []byte) bool {
	dots, label := 0, 0
	for _, c := range name {
		switch {
		case c == '.':
			if label == 0 {
				return false
			}
			dots, label = dots+1, 0
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-' && dots > 0:
			label++
		default:
			return false
		}
	}
	return dots > 0 && label > 0
}

// parseInteger reads a number that the value rules accept. An integer may be
// spelt with a fraction or an exponent, as long as it is one.
func parseInteger(raw []byte) (int64, bool) {
	if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return 0, false
	}
	var n int64
	for i, c := range raw {
		switch {
		case '0' <= c && c <= '9':
			n = n*10 + int64(c-'0')
		case c == '-' && i == 0:
		default:
			f, err := strconv.ParseFloat(string(raw), 64)
			return int64(f), err == nil && f == float64(int64(f))
		}
	}
	if raw[0] == '-' {
		n = -n
	}
	return n, true
}

// AppendMessage appends the JSON of a message: the members of e in the order of
// the protocol's page, with body in the place of e.Body. e.Type is not looked at.
func AppendMessage(dst []byte, e *Envelope, body Body) []byte {
	t := body.Type()
	dst = e.appendBase(dst, t)
	dst = body.AppendJSON(dst)
	return e.appendExtensions(dst)
}

// AppendRaw is AppendMessage with e.Type and e.Body as they are.
func AppendRaw(dst []byte, e *Envelope) []byte {
	dst = e.appendBase(dst, e.Type)
	dst = append(dst, e.Body...)
	return e.appendExtensions(dst)
}

func (e *Envelope) appendBase(dst []byte, t MessageType) []byte {
	dst = append(dst, `{"protocolVersion":"`...)
	dst = e.Version.append(dst)
	dst = append(dst, `","messageType":"`...)
	dst = append(dst, t...)
	dst = append(dst, `","messageId":"`...)
	dst = e.MessageID.append(dst)
	dst = append(dst, `","sequence":`...)
	dst = strconv.AppendUint(dst, e.Sequence, 10)
	dst = append(dst, `,"timestampUtc":"`...)
	dst = AppendTime(dst, e.Timestamp)
	dst = append(dst, `","traceId":`...)
	if e.TraceID.IsNull() {
		dst = append(dst, "null"...)
	} else {
		dst = append(dst, '"')
		dst = append(dst, e.TraceID[:]...)
		dst = append(dst, '"')
	}
	dst = append(dst, `,"causationId":`...)
	dst = e.CausationID.append(dst)
	dst = append(dst, `,"`...)
	dst = append(dst, t...)
	return append(dst, `":`...)
}

func (e *Envelope) appendExtensions(dst []byte) []byte {
	dst = append(dst, `,"extensions":`...)
	if len(e.Extensions) == 0 {
		return append(dst, "{}}"...)
	}
	dst = append(dst, e.Extensions...)
	return append(dst, '}')
}

func (u NullUUID) append(dst []byte) []byte {
	if !u.Set {
		return append(dst, "null"...)
	}
	dst = append(dst, '"')
	dst = u.UUID.append(dst)
	return append(dst, '"')
}

// String names a message for a log.
func (e *Envelope) String() string {
	return fmt.Sprintf("%s %s (sequence %d)", e.Type, e.MessageID, e.Sequence)
}
