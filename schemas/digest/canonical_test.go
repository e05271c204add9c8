package digest_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/ijson"
)

// corpus returns the directory of the independent RFC 8785 vectors; it skips
// the test, saying so, where they are not present.
func corpus(t *testing.T) string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "shared", "corpora", "jcs")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the independent RFC 8785 vectors are not at %s: %v", dir, err)
	}
	return dir
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestCanonicalVectors(t *testing.T) {
	dir := corpus(t)
	inputs, err := filepath.Glob(filepath.Join(dir, "input", "*.json"))
	if err != nil || len(inputs) < 6 {
		t.Fatalf("%d inputs, %v", len(inputs), err)
	}
	for _, input := range inputs {
		name := filepath.Base(input)
		doc := read(t, input)
		want := bytes.TrimRight(read(t, dir, "output", name), "\n")
		asHex := strings.Join(strings.Fields(string(read(t, dir, "outhex", strings.TrimSuffix(name, ".json")+".txt"))), "")
		if hex.EncodeToString(want) != asHex {
			t.Fatalf("%s: the vector's two outputs differ", name)
		}
		got, err := digest.Canonical(doc)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
		value := jsontext.Value(bytes.Clone(doc))
		if err := value.Canonicalize(); err != nil || !bytes.Equal(value, want) {
			t.Errorf("%s: jsontext makes %q, %v", name, value, err)
		}
		d, err := digest.Manifest(doc)
		if err != nil || d != digest.Of(want) {
			t.Errorf("%s: Manifest = %s, %v", name, d, err)
		}
		if again, err := digest.Manifest(got); err != nil || again != d {
			t.Errorf("%s: the canonical form has digest %s, %v; the document has %s", name, again, err, d)
		}
	}
}

// Each line of the number vectors is a double's bits in hex and its canonical
// form.
func TestCanonicalNumbers(t *testing.T) {
	lines := bufio.NewScanner(bytes.NewReader(read(t, corpus(t), "es6_1k.txt")))
	n := 0
	for ; lines.Scan(); n++ {
		bits, want, ok := strings.Cut(lines.Text(), ",")
		u, err := strconv.ParseUint(bits, 16, 64)
		if !ok || err != nil {
			t.Fatalf("line %q", lines.Text())
		}
		f := math.Float64frombits(u)
		for _, format := range []byte{'g', 'e'} {
			doc := strconv.FormatFloat(f, format, -1, 64)
			got, err := digest.Canonical([]byte("[" + doc + "]"))
			if err != nil || string(got) != "["+want+"]" {
				t.Errorf("%s (%s): %s, %v; want %s", doc, bits, got, err, want)
			}
		}
	}
	if err := lines.Err(); err != nil || n < 1000 {
		t.Errorf("%d numbers, %v", n, err)
	}
}

// Whatever ijson accepts has a canonical form, both implementations agree on
// it, and it is accepted again.
func TestCanonicalOfEverythingAccepted(t *testing.T) {
	corpus(t)
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "shared", "corpora", "json", "test_*", "*.json"))
	if err != nil || len(files) < 300 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	n := 0
	for _, file := range files {
		doc := read(t, file)
		if ijson.Check(doc) != nil {
			continue
		}
		n++
		got, err := digest.Canonical(doc)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		value := jsontext.Value(bytes.Clone(doc))
		if err := value.Canonicalize(); err != nil || !bytes.Equal(value, got) {
			t.Errorf("%s: jcs makes %q, jsontext %q, %v", file, got, value, err)
		}
		if err := ijson.Check(got); err != nil {
			t.Errorf("%s: the canonical form %q is refused: %v", file, got, err)
		}
	}
	if n < 80 {
		t.Errorf("only %d documents", n)
	}
}

func TestCanonicalRefuses(t *testing.T) {
	for _, doc := range []string{"", "{", `{"a":1,"a":2}`, "[1e400]", "[1] x", `"\ud800"`} {
		if got, err := digest.Canonical([]byte(doc)); err == nil {
			t.Errorf("%q: %q", doc, got)
		}
		if got, err := digest.Manifest([]byte(doc)); err == nil || got != "" {
			t.Errorf("%q: %q, %v", doc, got, err)
		}
	}
}
