package ijson_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/switchyard-plugins/switchyard/schemas/ijson"
)

// seeds adds the independent corpus where it is present, and always some of
// every rule's own cases; it fails when there is nothing to start from.
func seeds(f *testing.F) {
	n := 0
	add := func(doc []byte) {
		if len(doc) <= 1<<16 {
			f.Add(doc)
			n++
		}
	}
	for _, doc := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"status":"healthy","checkedAt":"2024-01-01T00:00:00Z"}}`,
		`{"kind":"k","note":null}`, `{"Kind":"k"}`, `{"kind":1}`, `{"kind":"\ufffe"}`, `{"kind":"\ud83f\udffe"}`, `{}`,
		`[1e400,1e-400,9007199254740992.0,-0,5e-324]`, `{"a":1,"\u0061":2}`, "\ufeff{}", "[\x00]\x00", `"\ud800"`, `[1] 2`,
		`{"id":"i","label":"root","children":[{"label":"leaf","children":[]}]}`, nested("[", "", "]", 65), nested(`{"":`, "0", "}", 64),
	} {
		add([]byte(doc))
	}
	if dir := filepath.Join("..", "..", "..", "shared", "corpora", "json"); dirExists(dir) {
		files, err := filepath.Glob(filepath.Join(dir, "test_*", "*.json"))
		if err != nil || len(files) == 0 {
			f.Fatalf("the corpus at %s holds nothing: %v", dir, err)
		}
		for _, file := range files {
			doc, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			add(doc)
		}
	} else {
		f.Logf("without the independent corpus: %s is not there", dir)
	}
	if n < 10 {
		f.Fatalf("%d seeds", n)
	}
	f.Logf("%d seeds", n)
}

func dirExists(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}

func FuzzUntyped(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, doc []byte) { agree(t, doc) })
}

// message has every kind of shape that the wire types have.
type message struct {
	ID       *int64           `json:"id"`
	Result   json.RawMessage  `json:"result,omitempty"`
	Note     string           `json:"note,omitempty"`
	Kind     string           `json:"kind"`
	Children []message        `json:"children,omitempty"`
	Named    map[string]inner `json:"named,omitempty"`
}

func FuzzTyped(f *testing.F) {
	seeds(f)
	f.Add([]byte(`{"id":null,"result":null,"kind":"k","children":[{"id":1,"kind":"c","named":{"x":{"kind":"k"}}}]}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		var v message
		err := ijson.Unmarshal(doc, &v)
		if err != nil {
			var e *ijson.Error
			if !errors.As(err, &e) || e.Offset < 0 || e.Offset > int64(len(doc)) || e.Message == "" {
				t.Fatalf("%q: %#v", doc, err)
			}
			if checked := ijson.Check(doc); (checked != nil) != (e.Code[:5] == "json.") || checked != nil && !reflect.DeepEqual(checked, err) {
				t.Fatalf("%q: Check says %v, Unmarshal says %v", doc, checked, err)
			}
			return
		}
		var std message
		if err := json.Unmarshal(doc, &std); err != nil {
			t.Fatalf("%q: accepted, but encoding/json says %v", doc, err)
		}
		if !equal(v, std) {
			t.Fatalf("%q: read as %+v, by encoding/json as %+v", doc, v, std)
		}
		back, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var again message
		if err := ijson.Unmarshal(back, &again); err != nil {
			t.Fatalf("%q: written as %q, which is refused: %v", doc, back, err)
		}
	})
}

// equal compares what two readers made, taking empty for nil.
func equal(a, b message) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}
