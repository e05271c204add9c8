package wire

import (
	"github.com/switchyard-plugins/switchyard/sdk/plugin/internal/strict"
)

// baseMembers is how many members every envelope has, with its body.
const baseMembers = len(baseNames) + 1

// plain reads a frame that is spelt as AppendMessage spells it: these members in this
// order, without white space, escapes and extensions. No name can then occur twice or be
// unknown, and nothing is left to be looked at but the values, which are held to the same
// rules as in any other spelling. It reports false for everything else, also for what
// has a fault: that is then read, and judged, member by member.
func plain(frame []byte, e *Envelope) bool {
	p := plainReader{Scanner: strict.Scanner{Data: frame}, ok: true}
	p.literal(`{"protocolVersion":"`)
	e.Version = plainText(&p, parseVersion[[]byte])
	p.literal(`,"messageType":"`)
	e.Type = plainText(&p, func(t []byte) (MessageType, bool) { m := typeNamed(t); return m, m != "" })
	p.literal(`,"messageId":"`)
	e.MessageID = p.uuid()
	p.literal(`,"sequence":`)
	e.Sequence = uint64(p.integer())
	p.literal(`,"timestampUtc":"`)
	e.Timestamp = plainText(&p, parseTime[[]byte])
	p.literal(`,"traceId":`)
	if !p.null() {
		p.literal(`"`)
		e.TraceID = plainText(&p, parseTraceID[[]byte])
	}
	p.literal(`,"causationId":`)
	if !p.null() {
		p.literal(`"`)
		e.CausationID = Some(p.uuid())
	}
	p.literal(`,"`)
	p.literal(string(e.Type))
	p.literal(`":`)
	if !p.ok || e.Sequence < 1 {
		return false
	}
	start := p.Pos
	if e.Type != TypeStreamItem || !p.item(e) {
		p.Pos = start
		if !p.value(1, baseMembers) {
			return false
		}
	}
	e.Body = frame[start:p.Pos:p.Pos]
	const end = `,"extensions":{}}`
	p.literal(end)
	e.Extensions = frame[len(frame)-len("{}}") : len(frame)-1 : len(frame)-1]
	return p.ok && p.Pos == len(frame)
}

// item reads the body of a streamItem. It reports false if it is spelt in another way.
func (p *plainReader) item(e *Envelope) bool {
	b := &e.item
	p.literal(`{"requestId":"`)
	b.RequestID = p.uuid()
	p.literal(`,"operationId":"`)
	b.OperationID = p.uuid()
	p.literal(`,"index":`)
	b.Index = p.integer()
	p.literal(`,"payload":`)
	start := p.Pos
	p.ok = p.ok && p.value(2, baseMembers+len(streamItemMembers))
	b.Payload = p.Data[start:p.Pos:p.Pos]
	p.literal(`}`)
	e.itemRead, p.ok = p.ok, true
	return e.itemRead
}

// ReadItem reads the body of a streamItem that came from Scan, as Decode does; what Scan
// has read already is not read again.
func (e *Envelope) ReadItem(b *StreamItem) error {
	if e.itemRead {
		*b = e.item
		return nil
	}
	return Decode(e.Body, b)
}

// A plainReader stands before what must come next. ok becomes false, for good, where
// something else comes.
type plainReader struct {
	strict.Scanner
	ok bool
}

func (p *plainReader) literal(text string) {
	end := p.Pos + len(text)
	if p.ok = p.ok && end <= len(p.Data) && string(p.Data[p.Pos:end]) == text; p.ok {
		p.Pos = end
	}
}

// value walks one value that stands inside so many objects, in a frame with so many
// members beside its own.
func (p *plainReader) value(depth, members int) bool {
	p.Inside(depth, members)
	return p.Pos < len(p.Data) && p.Data[p.Pos] > ' ' && p.Value() == nil
}

// null walks null, if that comes.
func (p *plainReader) null() bool {
	const word = "null"
	if !p.ok || len(p.Data)-p.Pos < len(word) || string(p.Data[p.Pos:p.Pos+len(word)]) != word {
		return false
	}
	p.Pos += len(word)
	return true
}

// plainText reads what stands before the next quote, and walks that. What parse accepts
// must need no escapes.
func plainText[T any](p *plainReader, parse func([]byte) (T, bool)) (value T) {
	const longest = 40 // bytes of what parse may accept
	for i := p.Pos; p.ok && i < len(p.Data) && i-p.Pos <= longest; i++ {
		if p.Data[i] == '"' {
			value, p.ok = parse(p.Data[p.Pos:i])
			p.Pos = i + 1
			return value
		}
	}
	p.ok = false
	return value
}

// uuid reads a UUID and the quote after it.
func (p *plainReader) uuid() (u UUID) {
	const size = 36
	if p.ok = p.ok && p.Pos+size < len(p.Data) && p.Data[p.Pos+size] == '"'; p.ok {
		u, p.ok = parseUUID(p.Data[p.Pos : p.Pos+size])
		p.Pos += size + 1
	}
	return u
}

// integer reads a number of digits alone.
func (p *plainReader) integer() (n int64) {
	const digits = 15 // every number of so many is one that JSON can carry
	start := p.Pos
	for p.Pos < len(p.Data) && p.Pos-start <= digits && p.Data[p.Pos]-'0' <= 9 {
		n = n*10 + int64(p.Data[p.Pos]-'0')
		p.Pos++
	}
	size := p.Pos - start
	p.ok = p.ok && size > 0 && size <= digits && (size == 1 || p.Data[start] != '0')
	return n
}
