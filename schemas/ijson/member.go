package ijson

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// HasMember reports whether data begins as an object that has a member of that name,
// spelled so. It tells documents apart before one of them is read strictly: of what is
// no JSON it says no more than the part before the fault shows.
func HasMember(data []byte, name string) bool {
	d := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return false
	}
	for d.PeekKind() == '"' {
		t, err := d.ReadToken()
		if err != nil {
			return false
		}
		if t.String() == name {
			return true
		}
		if d.SkipValue() != nil {
			return false
		}
	}
	return false
}
