package worker

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/switchyard-plugins/switchyard/verify"
)

// maxSBOMDepth bounds values inside each other.
const maxSBOMDepth = 64

// contextV3 is the only context that a 3.0.1 document may name: another one would give
// its members another meaning.
const contextV3 = "https://spdx.org/rdf/3.0.1/spdx-context.jsonld"

// scanSBOM checks the JSON of a document, which the library reads with less care: valid
// UTF-8, no member twice, also not in another case, no null in a list, bounded depth, one
// value. It returns the SPDX version that the document states.
func scanSBOM(document []byte) (version string, err error) {
	malformed := func(format string, args ...any) error {
		return refuse(verify.CodeSBOMMalformed, format, args...)
	}
	d := jsontext.NewDecoder(bytes.NewReader(document))
	var (
		names  []map[string]bool // of the open objects, folded; nil for a list
		member string            // that was read last
		done   bool
	)
	stated := map[string]string{} // by members of the outermost object
	for {
		kind := d.PeekKind()
		token, err := d.ReadToken()
		if errors.Is(err, io.EOF) && done {
			break
		}
		if err != nil {
			return "", malformed("%v", err)
		}
		depth := d.StackDepth()
		if depth > maxSBOMDepth {
			return "", malformed("values are more than %d deep inside each other", maxSBOMDepth)
		}
		if len(names) == 0 && (kind != '{' || done) {
			return "", malformed("the document is not one JSON object")
		}
		switch kind {
		case '{', '[':
			var open map[string]bool
			if kind == '{' {
				open = make(map[string]bool)
			}
			names = append(names, open)
			continue
		case '}', ']':
			names = names[:len(names)-1]
			done = len(names) == 0
			continue
		}
		open := names[len(names)-1]
		if open == nil {
			if kind == 'n' {
				return "", malformed("null in a list")
			}
			continue
		}
		_, read := d.StackIndex(depth)
		if read%2 == 0 { // a value
			if len(names) == 1 && kind == '"' && (member == "spdxVersion" || member == "@context") {
				stated[member] = token.String()
			}
			continue
		}
		member = token.String()
		folded := strings.ToLower(strings.ToUpper(member))
		if open[folded] {
			return "", malformed("the member %q is there twice, in different cases", member)
		}
		open[folded] = true
	}
	switch v2, v3 := stated["spdxVersion"], stated["@context"]; {
	case v2 == "SPDX-2.2" && v3 == "":
		return "2.2", nil
	case v2 == "SPDX-2.3" && v3 == "":
		return "2.3", nil
	case v2 == "" && v3 == contextV3:
		return "3.0.1", nil
	case v2 == "" && v3 == "":
		return "", malformed("it names no version of SPDX")
	default:
		return "", malformed("SPDX 2.2, 2.3 and 3.0.1 are read, and it says %q", strings.TrimSpace(v2+" "+v3))
	}
}
