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

// checkSchemas makes sure that each schema which a session manifest refers to lies in
// the package, once, has the digest that the manifest states, and is in the subset
// that every host reads.
func checkSchemas(root *os.Root, tree *archive.Tree, m *Manifest, where string) error {
	if m.Session == nil {
		return nil
	}
	found := map[string]string{} // the files by $id
	sums := map[string]digest.Digest{}
	for _, f := range tree.Files {
		if path.Dir(f.Path) != sessionmanifest.SchemasDir || path.Ext(f.Path) != ".json" {
			continue
		}
		bad := func(err error) error { return &Malformed{Where: where, File: f.Path, Err: err} }
		if len(found) == maxSchemas {
			return bad(fmt.Errorf("is one of more than %d schemas", maxSchemas))
		}
		document, err := readSchema(root, f.Path)
		if err != nil {
			return bad(err)
		}
		if digest.Of(document).Hex() != f.SHA256 {
			return bad(errors.New("was changed while the package was read"))
		}
		if err := ijson.Check(document); err != nil {
			return bad(err)
		}
		schema, err := subset.Compile(document)
		if err != nil {
			return bad(err)
		}
		id := schema.ID()
		if other, twice := found[id]; twice {
			return bad(fmt.Errorf("has the $id %s, and so has %s", id, other))
		}
		found[id] = f.Path
		if sums[id], err = digest.Schema(document); err != nil {
			return bad(err)
		}
	}
	for _, ref := range m.Session.SchemaRefs() {
		bad := func(format string, args ...any) error {
			return &Malformed{Where: where, File: sessionmanifest.FileName, Err: fmt.Errorf(ref.Pointer+": "+format, args...)}
		}
		stated, err := digest.Parse(ref.Digest)
		switch {
		case found[ref.URI] == "":
			return bad("no file of %s/ has the $id %s", sessionmanifest.SchemasDir, ref.URI)
		case err != nil:
			return bad("%w", err)
		case stated != sums[ref.URI]:
			return &Malformed{Where: where, File: sessionmanifest.FileName,
				Err: &StatedDigest{Where: ref.Pointer + "/digest, of " + found[ref.URI] + ",", Stated: stated, Found: sums[ref.URI]}}
		}
	}
	return nil
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
