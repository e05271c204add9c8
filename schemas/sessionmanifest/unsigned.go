package sessionmanifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrNoDigest is returned by Unsigned for a document without the member.
var ErrNoDigest = errors.New("the manifest has no member provenance.manifestDigest")

// Unsigned returns the document without the member provenance.manifestDigest and the
// comma that it leaves, otherwise byte for byte: the manifest digest is SHA-256 over
// the RFC 8785 form of that. The form of a document without the member is the form of
// the document, without the member. The document must have passed the value rules.
func Unsigned(document []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(document))
	if err := enterMember(d, "provenance"); err != nil {
		return nil, err
	}
	open := d.InputOffset()
	begin, end, first, last := int64(-1), int64(0), false, int64(0)
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, ErrNoDigest
	}
	last = d.InputOffset()
	for n := 0; d.More(); n++ {
		name, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("the manifest is not JSON: %w", err)
		}
		if err := skip(d); err != nil {
			return nil, err
		}
		if name == "manifestDigest" {
			begin, end, first = last, d.InputOffset(), n == 0
		}
		last = d.InputOffset()
	}
	if begin < open {
		return nil, ErrNoDigest
	}
	if first { // the comma after it goes, if there is one
		rest := bytes.TrimLeft(document[end:], " \t\r\n")
		if len(rest) > 0 && rest[0] == ',' {
			end = int64(len(document)-len(rest)) + 1
		}
	}
	out := make([]byte, 0, len(document))
	return append(append(out, document[:begin]...), document[end:]...), nil
}

// enterMember stands before the value of a member of the document's object.
func enterMember(d *json.Decoder, name string) error {
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return ErrNoDigest
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return fmt.Errorf("the manifest is not JSON: %w", err)
		}
		if t == name {
			return nil
		}
		if err := skip(d); err != nil {
			return err
		}
	}
	return ErrNoDigest
}

func skip(d *json.Decoder) error {
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return fmt.Errorf("the manifest is not JSON: %w", err)
	}
	return nil
}
