package pkgmgr

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/switchyard-plugins/switchyard/lockfile/textfile"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/ijson"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
)

// WriteDigests writes into the session manifest of the package in dir the digests of
// its schemas and its own, and returns what it changed, as JSON Pointers. Nothing else
// of the text changes. Whether the manifest and the schemas are good is Check's to say.
func WriteDigests(dir string) (changed []string, err error) {
	file := filepath.Join(dir, manifest.FileName)
	bad := func(err error) error { return &Malformed{Where: dir, File: manifest.FileName, Err: err} }
	text, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, bad(errors.New("is missing from the package's root"))
	case err != nil:
		return nil, err
	case len(text) > sessionmanifest.MaxBytes:
		return nil, bad(fmt.Errorf("has more than %d bytes", sessionmanifest.MaxBytes))
	}
	if err := ijson.Check(text); err != nil {
		return nil, bad(err)
	}
	if !ijson.HasMember(text, "manifestSchemaVersion") {
		return nil, bad(errors.New("is a manifest of the call protocol, which states no digests"))
	}
	schemas, err := schemasIn(dir)
	if err != nil {
		return nil, err
	}
	places := findDigests(text)
	slices.Reverse(places) // what is written does not move what comes before it
	for _, p := range places {
		if p.uri == "" {
			continue
		}
		schema, ok := schemas[p.uri]
		if !ok {
			return nil, bad(missingSchema(path.Dir(p.pointer), p.uri))
		}
		text, changed = p.write(text, schema.sum, changed)
	}
	own, err := digest.SessionManifest(text)
	if err != nil {
		return nil, bad(err)
	}
	for _, p := range findDigests(text) {
		if p.pointer == "/provenance/manifestDigest" {
			text, changed = p.write(text, own, changed)
		}
	}
	slices.Sort(changed)
	if len(changed) == 0 {
		return nil, nil
	}
	return changed, textfile.Write(file, text)
}

// schemasIn reads the schema documents of the package in dir.
func schemasIn(dir string) (map[string]packageSchema, error) {
	names, err := readNames(filepath.Join(dir, sessionmanifest.SchemasDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for i, name := range names {
		names[i] = path.Join(sessionmanifest.SchemasDir, name)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return readSchemas(root, names, dir)
}

// A digestPlace is a string in a manifest that states a digest.
type digestPlace struct {
	pointer    string
	begin, end int    // of the string, with its quotes
	uri        string // of the schema; "" for the manifest's own
}

func (p digestPlace) write(text []byte, sum digest.Digest, changed []string) ([]byte, []string) {
	now := `"` + string(sum) + `"`
	if string(text[p.begin:p.end]) == now {
		return text, changed
	}
	return slices.Concat(text[:p.begin], []byte(now), text[p.end:]), append(changed, p.pointer)
}

// findDigests returns where a manifest states digests, in the order of its text.
func findDigests(text []byte) (list []digestPlace) {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	uris := map[string]string{} // by the pointer of the reference
	for {
		value, err := d.ReadToken()
		if err != nil {
			break
		}
		at := string(d.StackPointer())
		if _, length := d.StackIndex(d.StackDepth()); value.Kind() != '"' || length%2 == 1 {
			continue // no string, or a member's name
		}
		ref, member := path.Split(at)
		ref = strings.TrimSuffix(ref, "/")
		switch {
		case member == "uri":
			uris[ref] = value.String()
		case member == "digest" && isSchemaRef(ref), at == "/provenance/manifestDigest":
			end := int(d.InputOffset())
			begin := bytes.LastIndexByte(text[:end-1], '"')
			list = append(list, digestPlace{pointer: at, begin: begin, end: end})
		}
	}
	for i, p := range list {
		list[i].uri = uris[path.Dir(p.pointer)]
	}
	return list
}

func isSchemaRef(pointer string) bool {
	for _, pattern := range []string{"/capabilities/*/operations/*/requestSchema", "/capabilities/*/operations/*/responseSchema", "/settings/schema"} {
		if ok, err := path.Match(pattern, pointer); err == nil && ok {
			return true
		}
	}
	return false
}
