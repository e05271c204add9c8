package pkgmgr

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"github.com/switchyard-plugins/switchyard/pkgmgr/archive"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/ijson"
	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
	"github.com/switchyard-plugins/switchyard/schemas/subset"
)

// maxSchemas bounds the schema documents of one package.
const maxSchemas = 500

// A packageSchema is a schema document of a package.
type packageSchema struct {
	file   string
	sum    digest.Digest // as a manifest refers to it
	sha256 string        // of the file's bytes, hex
}

// checkSchemas makes sure that each schema which a session manifest refers to lies in
// the package, once, has the digest that the manifest states, and is in the subset
// that every host reads.
func checkSchemas(root *os.Root, tree *archive.Tree, m *Manifest, where string) error {
	if m.Session == nil {
		return nil
	}
	var files []string
	for _, f := range tree.Files {
		if path.Dir(f.Path) == sessionmanifest.SchemasDir {
			files = append(files, f.Path)
		}
	}
	schemas, err := readSchemas(root, files, where)
	if err != nil {
		return err
	}
	for _, s := range schemas {
		if f, ok := tree.File(s.file); !ok || f.SHA256 != s.sha256 {
			return &Malformed{Where: where, File: s.file, Err: errors.New("was changed while the package was read")}
		}
	}
	for _, ref := range m.Session.SchemaRefs() {
		s, ok := schemas[ref.URI]
		stated, err := digest.Parse(ref.Digest)
		switch {
		case !ok:
			err = missingSchema(ref.Pointer, ref.URI)
		case err == nil && stated != s.sum:
			err = &StatedDigest{Where: ref.Pointer + "/digest, of " + s.file + ",", Stated: stated, Found: s.sum}
		}
		if err != nil {
			return &Malformed{Where: where, File: sessionmanifest.FileName, Err: err}
		}
	}
	return nil
}

func missingSchema(pointer, uri string) error {
	return fmt.Errorf("%s: no file of %s/ has the $id %s", pointer, sessionmanifest.SchemasDir, uri)
}

// readSchemas reads those of the files that are schema documents, each of which must be
// in the subset and have an $id of its own, by which they are returned.
func readSchemas(root *os.Root, files []string, where string) (map[string]packageSchema, error) {
	found := map[string]packageSchema{}
	for _, file := range files {
		if path.Ext(file) != ".json" {
			continue
		}
		bad := func(err error) error { return &Malformed{Where: where, File: file, Err: err} }
		if len(found) == maxSchemas {
			return nil, bad(fmt.Errorf("is one of more than %d schemas", maxSchemas))
		}
		document, err := readSchema(root, file)
		if err != nil {
			return nil, bad(err)
		}
		if err := ijson.Check(document); err != nil {
			return nil, bad(err)
		}
		schema, err := subset.Compile(document)
		if err != nil {
			return nil, bad(err)
		}
		id := schema.ID()
		if other, twice := found[id]; twice {
			return nil, bad(fmt.Errorf("has the $id %s, and so has %s", id, other.file))
		}
		sum, err := digest.Schema(document)
		if err != nil {
			return nil, bad(err)
		}
		found[id] = packageSchema{file, sum, digest.Of(document).Hex()}
	}
	return found, nil
}

func readSchema(root *os.Root, name string) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	document, err := io.ReadAll(io.LimitReader(f, subset.MaxDocument+1))
	if err == nil && len(document) > subset.MaxDocument {
		err = fmt.Errorf("has more than %d bytes", subset.MaxDocument)
	}
	return document, err
}
