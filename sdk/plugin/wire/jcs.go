package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"unicode/utf16"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/internal/strict"
)

// Canonical returns the canonical form of one JSON document (RFC 8785, JCS). The
// error is a *Fault with a code of the value rules; numbers need only be ones
// that a double holds.
func Canonical(doc []byte) ([]byte, error) {
	if err := strict.CheckFinite(doc); err != nil {
		return nil, asFault(err)
	}
	return appendCanonical(make([]byte, 0, len(doc)), bytes.Trim(doc, " \t\r\n")), nil
}

// Digest returns "sha256:" and the SHA-256 of the canonical form of doc in
// lower-case hexadecimal.
func Digest(doc []byte) (string, error) {
	canonical, err := Canonical(doc)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(canonical)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// RequestDigest returns the digest that tells two requests under one idempotency
// key apart: what is asked, without ids, attempt and deadline.
func RequestDigest(capabilityID, operationName, operationVersion string, payload json.RawMessage) (string, error) {
	doc := append([]byte(nil), `{"capabilityId":`...)
	doc = AppendString(doc, capabilityID)
	doc = AppendString(append(doc, `,"operationName":`...), operationName)
	doc = AppendString(append(doc, `,"operationVersion":`...), operationVersion)
	doc = append(append(doc, `,"payload":`...), payload...)
	return Digest(append(doc, '}'))
}

// appendCanonical writes a value that has passed strict.CheckFinite, without the
// white space around it.
func appendCanonical(dst, value []byte) []byte {
	switch c := value[0]; {
	case c == '{':
		return appendCanonicalObject(dst, value)
	case c == '[':
		dst = append(dst, '[')
		first := true
		for d := (decoder{data: value, pos: 1}); d.next(']'); first = false {
			if !first {
				dst = append(dst, ',')
			}
			dst = appendCanonical(dst, d.value())
		}
		return append(dst, ']')
	case c == '"':
		return appendCanonicalString(dst, unquote(value))
	case c == '-' || '0' <= c && c <= '9':
		f, _ := strconv.ParseFloat(string(value), 64)
		return AppendNumber(dst, f)
	}
	return append(dst, value...) // true, false, null
}

func appendCanonicalObject(dst, value []byte) []byte {
	type member struct {
		name  string
		units []uint16
		value []byte
	}
	var members []member
	for d := (decoder{data: value, pos: 1}); d.next('}'); {
		name := string(unquote(d.value()))
		d.colon()
		members = append(members, member{name, utf16.Encode([]rune(name)), d.value()})
	}
	slices.SortFunc(members, func(a, b member) int { return slices.Compare(a.units, b.units) })
	dst = append(dst, '{')
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendCanonicalString(dst, []byte(m.name))
		dst = append(dst, ':')
		dst = appendCanonical(dst, m.value)
	}
	return append(dst, '}')
}

// appendCanonicalString writes a string with the escapes that RFC 8785 §3.2.2.2
// names and no others, which are those of AppendString.
func appendCanonicalString(dst, text []byte) []byte { return appendQuoted(dst, text) }

// AppendNumber writes a finite double as ECMAScript does (RFC 8785 §3.2.2.3).
func AppendNumber(dst []byte, f float64) []byte {
	if f == 0 {
		return append(dst, '0') // and for -0
	}
	magnitude := math.Abs(f)
	if 1e-6 <= magnitude && magnitude < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	// Go writes at least two digits of exponent, ECMAScript as few as there are.
	e := start + bytes.IndexByte(dst[start:], 'e')
	if dst[e+2] == '0' {
		dst = append(dst[:e+2], dst[e+3:]...)
	}
	return dst
}
