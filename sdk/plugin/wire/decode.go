package wire

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/internal/strict"
)

// A Body is what the envelope's member holds that is named like its type.
type Body interface {
	// Type returns the message type that the body belongs to.
	Type() MessageType
	// AppendJSON appends the body as the protocol writes it.
	AppendJSON(dst []byte) []byte

	object
}

// An object is read member by member.
type object interface {
	// required lists the members that must be there.
	required() []string
	// member reads the value of one member. It reports false, and reads nothing,
	// if the object has no member of this name.
	member(d *decoder, name []byte) bool
}

// Decode reads a body that came from Scan. Every member must be one that the body
// has, and every required one must be there; null is a value as any other. The
// error is a *Fault with schema.mismatch or schema.unknown_member and the path of
// the member. Raw members are parts of raw.
func Decode(raw json.RawMessage, body Body) error {
	d := decoder{data: raw}
	d.object(body)
	if q, ok := body.(*ReceiptQuery); ok && d.fault == nil {
		q.check(&d)
	}
	if d.fault != nil {
		return d.fault
	}
	return nil
}

// Ids returns the requestId and operationId of a body that came from Scan, as far
// as it has them, whatever else is wrong with it.
func Ids(raw json.RawMessage) (request, operation NullUUID) {
	d := decoder{data: raw}
	if !d.at('{') {
		return
	}
	for d.pos++; d.next('}'); {
		name := unquote(d.value())
		d.colon()
		value := d.value()
		if len(value) == 0 || value[0] != '"' {
			continue
		}
		switch string(name) {
		case "requestId":
			request.UUID, request.Set = parseUUID(unquote(value))
		case "operationId":
			operation.UUID, operation.Set = parseUUID(unquote(value))
		}
	}
	return
}

// A decoder reads JSON that is known to keep the value rules. It stops at the
// first fault.
type decoder struct {
	data  []byte
	pos   int
	fault *Fault
}

func (d *decoder) space() {
	for d.pos < len(d.data) && d.data[d.pos] <= ' ' {
		d.pos++
	}
}

func (d *decoder) at(c byte) bool {
	d.space()
	return d.pos < len(d.data) && d.data[d.pos] == c
}

// next stands before the first or after any member or element: it reports whether
// there is another, and else walks the closing bracket.
func (d *decoder) next(closing byte) bool {
	if d.at(',') {
		d.pos++
		d.space()
		return true
	}
	if d.at(closing) || d.pos >= len(d.data) {
		d.pos++
		return false
	}
	return true
}

func (d *decoder) colon() {
	d.space()
	d.pos++
}

// value walks one value and returns it without the white space around it.
func (d *decoder) value() []byte {
	d.space()
	start := d.pos
	if start >= len(d.data) {
		return nil
	}
	switch d.data[start] {
	case '"':
		d.skipString()
	case '{', '[':
		for depth := 0; d.pos < len(d.data); {
			switch d.data[d.pos] {
			case '"':
				d.skipString()
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
			if d.pos++; depth == 0 {
				return d.data[start:d.pos:d.pos]
			}
		}
	default:
		for d.pos < len(d.data) {
			switch d.data[d.pos] {
			case ',', '}', ']', ' ', '\t', '\r', '\n', ':':
				return d.data[start:d.pos:d.pos]
			}
			d.pos++
		}
	}
	return d.data[start:d.pos:d.pos]
}

func (d *decoder) skipString() {
	for i := d.pos + 1; i < len(d.data); i++ {
		switch d.data[i] {
		case '"':
			d.pos = i + 1
			return
		case '\\':
			i++
		}
	}
	d.pos = len(d.data)
}

// unquote returns the text of a string with its quotes.
func unquote(value []byte) []byte {
	raw := value[1 : len(value)-1]
	for _, c := range raw {
		if c == '\\' {
			return strict.Unescape(raw, true)
		}
	}
	return raw
}

// mismatch keeps a fault, if it is the first.
func (d *decoder) mismatch(format string, args ...any) {
	d.fail(CodeSchemaMismatch, format, args...)
}

func (d *decoder) fail(code Code, format string, args ...any) {
	if d.fault == nil {
		d.fault = &Fault{Code: code, Offset: d.pos, Message: fmt.Sprintf(format, args...)}
	}
}

// in puts the fault below a member or element.
func (d *decoder) in(name string) {
	if strings.ContainsAny(name, "~/") {
		name = strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	}
	d.fault.Path = "/" + name + d.fault.Path
}

// object reads the members of o.
func (d *decoder) object(o object) {
	if !d.at('{') {
		d.mismatch("must be an object")
		return
	}
	start := d.pos
	required := o.required()
	var seen uint32
	hint := 0
	for d.pos++; d.next('}'); {
		at := d.pos
		name := unquote(d.value())
		d.colon()
		d.space()
		if !o.member(d, name) {
			d.pos = at
			d.fail(CodeSchemaUnknownMember, "has the unknown member %s", strict.Quote(string(name)))
			return
		}
		if d.fault != nil {
			d.in(string(name))
			return
		}
		for k := range required {
			i := hint + k
			if i >= len(required) {
				i -= len(required)
			}
			if required[i] == string(name) {
				seen |= 1 << i
				hint = i + 1
				break
			}
		}
	}
	if seen != 1<<len(required)-1 {
		d.pos = start
		for i, name := range required {
			if seen&(1<<i) == 0 {
				d.mismatch("is required")
				d.in(name)
				return
			}
		}
	}
}

// list reads an array; element is called before each element to read it.
func (d *decoder) list(element func()) {
	if !d.at('[') {
		d.mismatch("must be an array")
		return
	}
	i := 0
	for d.pos++; d.next(']'); i++ {
		if element(); d.fault != nil {
			d.in(strconv.Itoa(i))
			return
		}
	}
}

// text reads a string, a part of the data unless it holds escapes.
func (d *decoder) text() ([]byte, bool) {
	if !d.at('"') {
		d.mismatch("must be a string")
		return nil, false
	}
	return unquote(d.value()), true
}

// null walks null, if the value is that.
func (d *decoder) null() bool {
	if !d.at('n') {
		return false
	}
	d.value()
	return true
}

// string reads a string of at least min and at most max characters.
func (d *decoder) string(p *string, min, max int) {
	t, ok := d.text()
	if !ok {
		return
	}
	if n := utf8.RuneCount(t); n < min || n > max {
		d.mismatch("must have %d to %d characters", min, max)
		return
	}
	*p = string(t)
}

// matching reads a string for which ok is true.
func matching[S ~string](d *decoder, p *S, rule string, ok func([]byte) bool) {
	t, is := d.text()
	if !is {
		return
	}
	if !ok(t) {
		d.mismatch("must be %s", rule)
		return
	}
	*p = S(t)
}

// oneOf reads one of the strings.
func oneOf[S ~string](d *decoder, p *S, allowed []S) {
	t, is := d.text()
	if !is {
		return
	}
	for _, a := range allowed {
		if string(a) == string(t) {
			*p = a
			return
		}
	}
	d.mismatch("must be one of %s", quotedList(allowed))
}

func quotedList[S ~string](list []S) string {
	var b strings.Builder
	for i, s := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Quote(string(s)))
	}
	return b.String()
}

func (d *decoder) uuid(p *UUID) {
	t, is := d.text()
	if !is {
		return
	}
	u, ok := parseUUID(t)
	if !ok {
		d.mismatch("must be a UUID")
		return
	}
	*p = u
}

func (d *decoder) nullUUID(p *NullUUID) {
	if d.null() {
		return
	}
	d.uuid(&p.UUID)
	p.Set = d.fault == nil
}

func (d *decoder) time(p *time.Time) {
	t, is := d.text()
	if !is {
		return
	}
	at, ok := parseTime(t)
	if !ok {
		d.mismatch("must be a time as 2006-01-02T15:04:05.999999Z")
		return
	}
	// The zero time.Time stands for no time at all. The instant that it is has a place
	// in the protocol too; a nanosecond, which is never written, keeps them apart.
	if at.IsZero() {
		at = at.Add(1)
	}
	*p = at
}

func (d *decoder) version(p *Version) {
	t, is := d.text()
	if !is {
		return
	}
	v, ok := parseVersion(t)
	if !ok {
		d.mismatch(`must be a version as "1.0"`)
		return
	}
	*p = v
}

// integer reads an integer from min to max.
func (d *decoder) integer(p *int64, min, max int64) {
	d.space()
	n, ok := parseInteger(d.value())
	if !ok || n < min || n > max {
		d.mismatch("must be an integer from %d to %d", min, max)
		return
	}
	*p = n
}

func (d *decoder) bool(p *bool) {
	switch string(d.value()) {
	case "true":
		*p = true
	case "false":
		*p = false
	default:
		d.mismatch("must be true or false")
	}
}

// raw keeps a value as it was written.
func (d *decoder) raw(p *json.RawMessage) { *p = d.value() }

// rawObject keeps an object as it was written.
func (d *decoder) rawObject(p *json.RawMessage) {
	if !d.at('{') {
		d.mismatch("must be an object")
		return
	}
	d.raw(p)
}

// set reads an array of distinct strings, each read by one.
func set[S ~string](d *decoder, p *[]S, one func(*S)) {
	*p = []S{}
	d.list(func() {
		var s S
		if one(&s); d.fault != nil {
			return
		}
		for _, have := range *p {
			if have == s {
				d.mismatch("occurs twice")
				return
			}
		}
		*p = append(*p, s)
	})
}
