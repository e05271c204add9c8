package ijson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/switchyard-plugins/switchyard/schemas/ijson"
)

// corpus returns the directory of the independent JSON cases; it skips the
// test, saying so, where they are not present.
func corpus(t testing.TB) string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "shared", "corpora", "json")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the independent JSON corpus is not at %s: %v", dir, err)
	}
	return dir
}

// verdicts maps the corpus's words for a refusal to the codes that they may get
// here. Where a file has several faults the corpus names one of them.
var verdicts = map[string][]string{
	"accept":               nil,
	"reject:not-json":      {ijson.CodeSyntax},
	"reject:const":         {ijson.CodeSyntax},
	"reject:not-utf8":      {ijson.CodeUnicode},
	"reject:bom":           {ijson.CodeUnicode},
	"reject:surrogate":     {ijson.CodeUnicode},
	"reject:noncharacter":  {ijson.CodeUnicode},
	"reject:duplicate-key": {ijson.CodeDuplicateName},
	"reject:overflow":      {ijson.CodeNumber},
	"reject:underflow":     {ijson.CodeNumber},
	"reject:int>2^53-1":    {ijson.CodeNumber},
	"limit:depth":          {ijson.CodeLimit},
}

// deviations are the rows where this package means to differ. An entry that
// does not differ any more fails the test.
var deviations = map[string]struct{ code, reason string }{
	"i_structure_500_nested_arrays.json": {ijson.CodeLimit, tooDeep},

	"y_number.json":                        {ijson.CodeNumber, tooLarge},
	"y_number_real_capital_e.json":         {ijson.CodeNumber, tooLarge},
	"y_number_real_exponent.json":          {ijson.CodeNumber, tooLarge},
	"y_number_real_fraction_exponent.json": {ijson.CodeNumber, tooLarge},
	"y_object_extreme_numbers.json":        {ijson.CodeNumber, tooLarge},

	"n_string_1_surrogate_then_escape.json":             {ijson.CodeUnicode, surrogateFirst},
	"n_string_1_surrogate_then_escape_u.json":           {ijson.CodeUnicode, surrogateFirst},
	"n_string_1_surrogate_then_escape_u1.json":          {ijson.CodeUnicode, surrogateFirst},
	"n_string_1_surrogate_then_escape_u1x.json":         {ijson.CodeUnicode, surrogateFirst},
	"n_string_incomplete_surrogate.json":                {ijson.CodeUnicode, surrogateFirst},
	"n_string_incomplete_surrogate_escape_invalid.json": {ijson.CodeUnicode, surrogateFirst},
}

const (
	tooDeep  = "RFC 7493 sets no bound on depth; the protocols' value rules allow 64 levels"
	tooLarge = "an integral value beyond 2^53-1, written with an exponent: the corpus applies the bound to " +
		"literals without one, the value rules to values, so that 1e68 and its digits are judged alike"
	surrogateFirst = "refused by both; a lone surrogate stands before the fault of syntax, and the first fault is told"
)

func TestCorpus(t *testing.T) {
	dir := corpus(t)
	table, err := os.ReadFile(filepath.Join(dir, "ijson_expect.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	rows, agreed := 0, 0
	for _, line := range strings.Split(strings.TrimSpace(string(table)), "\n")[1:] {
		columns := strings.Split(strings.TrimSuffix(line, "\r"), "\t")
		if len(columns) != 3 {
			t.Fatalf("row %q has %d columns", line, len(columns))
		}
		name, want := columns[0], columns[2]
		rows++
		doc, err := os.ReadFile(filepath.Join(dir, "test_parsing", name))
		if err != nil {
			t.Fatal(err)
		}
		codes, known := verdicts[want]
		if !known {
			t.Errorf("%s: unknown verdict %q", name, want)
			continue
		}
		got := ""
		if err := ijson.Check(doc); err != nil {
			var e *ijson.Error
			if !errors.As(err, &e) {
				t.Fatalf("%s: %T", name, err)
			}
			got = e.Code
		}
		agrees := got == "" && codes == nil || slices.Contains(codes, got)
		if d, deviates := deviations[name]; deviates {
			if agrees || got != d.code {
				t.Errorf("%s: the corpus says %s and we %q; the recorded deviation is %q", name, want, got, d.code)
			}
			t.Logf("%s: %s (corpus: %s): %s", name, got, want, d.reason)
			continue
		}
		if !agrees {
			t.Errorf("%s: got %q, the corpus says %s", name, got, want)
			continue
		}
		agreed++
	}
	if rows < 300 || agreed+len(deviations) != rows {
		t.Errorf("%d rows, %d agree, %d deviations", rows, agreed, len(deviations))
	}
}

// The value of whatever is accepted is the value that encoding/json reads.
func TestCorpusValues(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(corpus(t), "test_*", "*.json"))
	if err != nil || len(files) < 300 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	accepted := 0
	for _, file := range files {
		doc, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if agree(t, doc) {
			accepted++
		}
	}
	if accepted < 80 {
		t.Errorf("only %d documents accepted", accepted)
	}
}

// agree holds a document to everything that must be true of it, accepted or
// not, and reports whether it was accepted.
func agree(t *testing.T, doc []byte) bool {
	t.Helper()
	before := bytes.Clone(doc)
	checked := ijson.Check(doc)
	var v any
	err := ijson.Unmarshal(doc, &v)
	if !bytes.Equal(doc, before) {
		t.Fatalf("%.200q was changed to %.200q", before, doc)
	}
	if !reflect.DeepEqual(checked, err) {
		t.Fatalf("%.200q: Check says %v, Unmarshal says %v", doc, checked, err)
	}
	if want := byTokens(doc); (want == "") != (err == nil) {
		t.Fatalf("%.200q: %v, but the reader by tokens says %q", doc, err, want)
	}
	if err != nil {
		var e *ijson.Error
		if !errors.As(err, &e) || !strings.HasPrefix(e.Code, "json.") {
			t.Fatalf("%.200q: %#v", doc, err)
		}
		if e.Offset < 0 || e.Offset > int64(len(doc)) || e.Line < 1 || e.Column < 1 {
			t.Fatalf("%.200q: position %#v", doc, e)
		}
		return false
	}
	var std any
	if err := json.Unmarshal(doc, &std); err != nil {
		t.Fatalf("%.200q: accepted, but encoding/json says %v", doc, err)
	}
	if !reflect.DeepEqual(v, std) {
		t.Fatalf("%.200q: read as %#v, by encoding/json as %#v", doc, v, std)
	}
	return true
}

// byTokens decides about a document slowly, token by token, from the decoded
// values instead of their spelling. It returns the code of the first fault.
func byTokens(doc []byte) string {
	d := jsontext.NewDecoder(bytes.NewReader(doc))
	members := 0
	for first := true; ; first = false {
		if !first && d.StackDepth() == 0 {
			if d.PeekKind(); len(bytes.TrimLeft(doc[d.InputOffset():], " \t\r\n")) > 0 {
				return ijson.CodeSyntax
			}
			return ""
		}
		tok, err := d.ReadToken()
		if err != nil {
			return ijson.CodeSyntax
		}
		switch tok.Kind() {
		case '{', '[':
			if d.StackDepth() > ijson.MaxDepth {
				return ijson.CodeLimit
			}
		case '"':
			s := tok.String()
			for _, r := range s {
				if isNoncharacter(r) {
					return ijson.CodeUnicode
				}
			}
			if len(s) > ijson.MaxString {
				return ijson.CodeLimit
			}
			if kind, n := d.StackIndex(d.StackDepth()); kind == '{' && n%2 == 1 {
				if members++; members > ijson.MaxMembers {
					return ijson.CodeLimit
				}
			}
		case '0':
			literal := tok.String()
			f, err := tok.Float()
			mantissa, _, _ := strings.Cut(strings.ToLower(literal), "e")
			if err != nil || f > ijson.MaxNumber || f < -ijson.MaxNumber || f == 0 && strings.Trim(mantissa, "-0.") != "" {
				return ijson.CodeNumber
			}
		}
	}
}

func isNoncharacter(r rune) bool {
	return r >= 0xFDD0 && r <= 0xFDEF || r&0xFFFF == 0xFFFE || r&0xFFFF == 0xFFFF
}
