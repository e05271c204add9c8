package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// packageEdits are the changes that a case's header can make to the package. The
// manifest's digest is made true again afterwards, except by "manifest text",
// which replaces the file, and "manifest last", which is done after that.
var packageEdits = lazy[map[string]bool]{make: func() map[string]bool {
	return map[string]bool{
		"manifest set": true, "manifest remove": true, "manifest last": true, "manifest text": true, "manifest absent": true,
		"schema text": true, "schema remove": true, "schema set": true,
	}
}}

// An operation is what the runner needs to know of one to call it.
type operation struct {
	capability, name, version string
	streamsIn, streamsOut     bool
}

// unpack writes the case's package to dir and returns the operations it
// declares by name, as far as its manifest can be read.
func unpack(c *Case, dir string) (map[string]operation, error) {
	root := "corpus/package"
	if c.Protocol == Call {
		root = "corpus/package-call"
	}
	files := map[string][]byte{}
	err := fs.WalkDir(corpus, root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[strings.TrimPrefix(path, root+"/")], err = corpus.ReadFile(path)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := change(files, c); err != nil {
		return nil, err
	}
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		mode := os.FileMode(0o644)
		if name == "run" {
			mode = 0o755
		}
		if err := os.WriteFile(path, text, mode); err != nil {
			return nil, err
		}
	}
	return operations(files["plugin.json"]), nil
}

func change(files map[string][]byte, c *Case) error {
	if len(c.Manifest) == 0 {
		return nil
	}
	manifest, err := decode(files["plugin.json"])
	if err != nil {
		return err
	}
	var text []byte
	for _, e := range c.Manifest {
		pointer, value, _ := strings.Cut(e.text, " ")
		switch e.path {
		case "manifest set":
			manifest, err = edited(manifest, pointer, value)
		case "manifest remove":
			manifest, err = edited(manifest, pointer, "")
		case "schema set": // FILE POINTER VALUE
			err = changeSchema(files, manifest, pointer, value)
		case "schema remove":
			delete(files, "schemas/"+pointer)
		case "schema text":
			files["schemas/"+pointer] = []byte(value)
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", c.Name, e.line, err)
		}
	}
	if c.Protocol == Session {
		if err := seal(manifest); err != nil {
			return err
		}
	}
	for _, e := range c.Manifest {
		if e.path == "manifest last" {
			pointer, value, _ := strings.Cut(e.text, " ")
			if manifest, err = edited(manifest, pointer, value); err != nil {
				return fmt.Errorf("%s:%d: %w", c.Name, e.line, err)
			}
		}
	}
	if text, err = json.MarshalIndent(manifest, "", "  "); err != nil {
		return err
	}
	for _, e := range c.Manifest {
		switch e.path {
		case "manifest text":
			line, err := variables{"manifest": string(text)}.expand(e.text)
			if err != nil {
				return fmt.Errorf("%s:%d: %w", c.Name, e.line, err)
			}
			text = []byte(line)
		case "manifest absent":
			delete(files, "plugin.json")
			return nil
		}
	}
	files["plugin.json"] = text
	return nil
}

// changeSchema changes one schema and makes the manifest's digests of it true.
func changeSchema(files map[string][]byte, manifest any, file, change string) error {
	pointer, value, _ := strings.Cut(change, " ")
	name := "schemas/" + file
	document, err := decode(files[name])
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	id := document.(map[string]any)["$id"]
	if document, err = edited(document, pointer, value); err != nil {
		return err
	}
	if files[name], err = json.Marshal(document); err != nil {
		return err
	}
	canonical, err := digest.Canonical(files[name])
	if err != nil {
		return err
	}
	renew(manifest, id, string(digest.Of(canonical)))
	return nil
}

func renew(value, id any, sum string) {
	switch v := value.(type) {
	case map[string]any:
		if v["uri"] == id && v["digest"] != nil {
			v["digest"] = sum
		}
		for _, inner := range v {
			renew(inner, id, sum)
		}
	case []any:
		for _, inner := range v {
			renew(inner, id, sum)
		}
	}
}

// seal makes provenance.manifestDigest true, where there is one.
func seal(manifest any) error {
	root, _ := manifest.(map[string]any)
	provenance, ok := root["provenance"].(map[string]any)
	if !ok || provenance["manifestDigest"] == nil {
		return nil
	}
	delete(provenance, "manifestDigest")
	text, err := json.Marshal(root)
	if err != nil {
		return err
	}
	canonical, err := digest.Canonical(text)
	if err != nil {
		return err
	}
	provenance["manifestDigest"] = string(digest.Of(canonical))
	return nil
}

// edited returns root with the value at a JSON Pointer set, or removed where
// text is "". "-" appends to an array.
func edited(root any, pointer, text string) (any, error) {
	var value any
	if text != "" {
		var err error
		if value, err = decode([]byte(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
	}
	if pointer == "" || pointer[0] != '/' {
		return nil, errors.New("want a JSON Pointer and a value")
	}
	return editedAt(root, strings.Split(pointer[1:], "/"), value, text == "")
}

func editedAt(node any, path []string, value any, remove bool) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	name := strings.NewReplacer("~1", "/", "~0", "~").Replace(path[0])
	last := len(path) == 1
	switch n := node.(type) {
	case map[string]any:
		if last && remove {
			if _, ok := n[name]; !ok {
				return nil, fmt.Errorf("no member %q to remove", name)
			}
			delete(n, name)
			return n, nil
		}
		inner, err := editedAt(n[name], path[1:], value, remove)
		n[name] = inner
		return n, err
	case []any:
		if name == "-" && last {
			return append(n, value), nil
		}
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i >= len(n) {
			return nil, fmt.Errorf("no element %q", name)
		}
		if last && remove {
			return slices.Delete(n, i, i+1), nil
		}
		n[i], err = editedAt(n[i], path[1:], value, remove)
		return n, err
	}
	return nil, fmt.Errorf("nothing is at %q", name)
}

func operations(manifest []byte) map[string]operation {
	var m struct {
		Capabilities []struct {
			ID         string
			Operations []struct {
				Name, OperationVersion string
				Streaming              struct{ Request, Response bool }
			}
		}
	}
	if json.Unmarshal(manifest, &m) != nil {
		return nil // a case may spoil the manifest on purpose
	}
	list := map[string]operation{}
	for _, c := range m.Capabilities {
		for _, o := range c.Operations {
			list[o.Name] = operation{c.ID, o.Name, o.OperationVersion, o.Streaming.Request, o.Streaming.Response}
		}
	}
	return list
}
