package strict_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/ijson"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/internal/strict"
)

// documents are accepted or refused for the rule that is named.
var documents = []struct{ text, code string }{
	{`{}`, ""},
	{` [1, -0, 0.5, 1e2, 9007199254740991, -9007199254740991, true, false, null, "a\u00e9\ud83d\ude00\/"] `, ""},
	{`{"a":{"a":1},"b":[{"a":1},{"a":1}]}`, ""},
	{strings.Repeat("[", 64) + strings.Repeat("]", 64), ""},
	{`5e-324`, ""},
	{"", strict.CodeSyntax},
	{"{} {}", strict.CodeSyntax},
	{`{"a":1,}`, strict.CodeSyntax},
	{`{a:1}`, strict.CodeSyntax},
	{`[1,]`, strict.CodeSyntax},
	{`01`, strict.CodeSyntax},
	{`-`, strict.CodeSyntax},
	{`1.`, strict.CodeSyntax},
	{`1e`, strict.CodeSyntax},
	{`+1`, strict.CodeSyntax},
	{`NaN`, strict.CodeSyntax},
	{`Infinity`, strict.CodeSyntax},
	{`tru`, strict.CodeSyntax},
	{`"`, strict.CodeSyntax},
	{`"\`, strict.CodeSyntax},
	{`"\x"`, strict.CodeSyntax},
	{`"\u12"`, strict.CodeSyntax},
	{"\"\t\"", strict.CodeSyntax},
	{`{"a":1,"\u0061":2}`, strict.CodeDuplicateName},
	{`[{"x":{"":1,"":2}}]`, strict.CodeDuplicateName},
	{"\xEF\xBB\xBF{}", strict.CodeUnicode},
	{"\"\xff\"", strict.CodeUnicode},
	{"\"\xed\xa0\x80\"", strict.CodeUnicode},
	{`"\ud800"`, strict.CodeUnicode},
	{`"\udc00"`, strict.CodeUnicode},
	{`"\ud800\ud800"`, strict.CodeUnicode},
	{`"\uffff"`, strict.CodeUnicode},
	{"\"\uFDD0\"", strict.CodeUnicode},
	{`"\ud83f\udfff"`, strict.CodeUnicode},
	{strings.Repeat("[", 65) + strings.Repeat("]", 65), strict.CodeLimit},
	{`1e400`, strict.CodeNumber},
	{`1e-400`, strict.CodeNumber},
	{`9007199254740992`, strict.CodeNumber},
	{`-9007199254740992`, strict.CodeNumber},
	{`1e16`, strict.CodeNumber},
}

func codeOf(err error) string {
	var fault *strict.Error
	if errors.As(err, &fault) {
		return fault.Code
	}
	return ""
}

func TestCheck(t *testing.T) {
	for _, d := range documents {
		if got := codeOf(strict.Check([]byte(d.text))); got != d.code {
			t.Errorf("%.80q: %q, want %q", d.text, got, d.code)
		}
	}
}

func TestLimits(t *testing.T) {
	members := func(n int) []byte {
		var b bytes.Buffer
		b.WriteString("[")
		for i := range n {
			if i > 0 {
				b.WriteString(",")
			}
			b.WriteString(`{"a":0}`)
		}
		b.WriteString("]")
		return b.Bytes()
	}
	text := func(n int) []byte { return []byte(`"` + strings.Repeat(`\u0041`, n) + `"`) }
	for _, tc := range []struct {
		doc  []byte
		code string
	}{
		{members(strict.MaxMembers), ""},
		{members(strict.MaxMembers + 1), strict.CodeLimit},
		{text(strict.MaxString), ""},
		{text(strict.MaxString + 1), strict.CodeLimit},
	} {
		if got := codeOf(strict.Check(tc.doc)); got != tc.code {
			t.Errorf("%d bytes: %q, want %q", len(tc.doc), got, tc.code)
		}
	}
}

// TestManyNames holds that looking for duplicates does not cost quadratic time.
func TestManyNames(t *testing.T) {
	object := map[string]int{}
	for i := range 50_000 {
		object[strings.Repeat("n", i%7)+string(rune('a'+i%26))+time.Duration(i).String()] = i
	}
	doc, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if err := strict.Check(doc); err != nil {
		t.Error(err)
	}
	twice := append(bytes.TrimSuffix(doc, []byte("}")), []byte(`,"a0s":1}`)...)
	if got := codeOf(strict.Check(twice)); got != strict.CodeDuplicateName {
		t.Errorf("the last name is a repetition: %q", got)
	}
}

// verdicts maps the corpus's words for a refusal to the code that it gets here.
var verdicts = map[string]string{
	"accept":               "",
	"reject:not-json":      strict.CodeSyntax,
	"reject:const":         strict.CodeSyntax,
	"reject:not-utf8":      strict.CodeUnicode,
	"reject:bom":           strict.CodeUnicode,
	"reject:surrogate":     strict.CodeUnicode,
	"reject:noncharacter":  strict.CodeUnicode,
	"reject:duplicate-key": strict.CodeDuplicateName,
	"reject:overflow":      strict.CodeNumber,
	"reject:underflow":     strict.CodeNumber,
	"reject:int>2^53-1":    strict.CodeNumber,
	"limit:depth":          strict.CodeLimit,
}

// deviations are the rows where the code differs from the corpus's word, and why. Those
// of the host's reader have the same reasons.
var deviations = map[string]struct{ code, reason string }{
	"i_structure_500_nested_arrays.json": {strict.CodeLimit, "I-JSON has no bound on depth, the value rules have"},

	"y_number.json":                        {strict.CodeNumber, exponent},
	"y_number_real_capital_e.json":         {strict.CodeNumber, exponent},
	"y_number_real_exponent.json":          {strict.CodeNumber, exponent},
	"y_number_real_fraction_exponent.json": {strict.CodeNumber, exponent},
	"y_object_extreme_numbers.json":        {strict.CodeNumber, exponent},

	"n_string_1_surrogate_then_escape.json":             {strict.CodeUnicode, surrogateFirst},
	"n_string_1_surrogate_then_escape_u.json":           {strict.CodeUnicode, surrogateFirst},
	"n_string_1_surrogate_then_escape_u1.json":          {strict.CodeUnicode, surrogateFirst},
	"n_string_1_surrogate_then_escape_u1x.json":         {strict.CodeUnicode, surrogateFirst},
	"n_string_incomplete_surrogate.json":                {strict.CodeUnicode, surrogateFirst},
	"n_string_incomplete_surrogate_escape_invalid.json": {strict.CodeUnicode, surrogateFirst},
}

const (
	exponent       = "an integral value beyond 2^53-1, written with an exponent: the rule is about values"
	surrogateFirst = "a lone surrogate stands before the fault of syntax, and the first fault is told"
)

// TestCorpus compares with the published verdicts, code by code, where the corpus is
// there, and with the host's reader.
func TestCorpus(t *testing.T) {
	const corpus = "../../../../../shared/corpora/json"
	expected, err := os.ReadFile(filepath.Join(corpus, "ijson_expect.tsv"))
	if errors.Is(err, os.ErrNotExist) {
		t.Log("NOTE: the JSON corpus is not here; its verdicts were not compared")
		t.Skip("no " + corpus)
	}
	if err != nil {
		t.Fatal(err)
	}
	n, deviating := 0, 0
	for _, row := range strings.Split(strings.TrimSpace(string(expected)), "\n")[1:] {
		columns := strings.Split(strings.TrimSpace(row), "\t")
		name := columns[0]
		doc, err := os.ReadFile(filepath.Join(corpus, "test_parsing", name))
		if err != nil {
			t.Fatal(err)
		}
		n++
		got := codeOf(strict.Check(doc))
		host := ""
		if err := ijson.Check(doc); err != nil {
			host = err.(*ijson.Error).Code
		}
		if (got == "") != (host == "") {
			t.Errorf("%s: %q, by the host %q", name, got, host)
		}
		want, known := verdicts[columns[2]]
		d, deviates := deviations[name]
		switch {
		case !known:
			t.Errorf("%s: unknown verdict %q", name, columns[2])
		case deviates:
			if deviating++; got != d.code || got == want {
				t.Errorf("%s: %q; the corpus says %s, the recorded deviation is %q", name, got, columns[2], d.code)
			}
		case got != want:
			t.Errorf("%s: %q, the corpus says %s; the host says %q", name, got, columns[2], host)
		}
	}
	if n < 300 || deviating != len(deviations) {
		t.Errorf("%d documents, %d of %d deviations", n, deviating, len(deviations))
	}
}

// FuzzCheck holds the plugin's reader and the host's together, and Check to
// what encoding/json accepts.
func FuzzCheck(f *testing.F) {
	for _, d := range documents {
		f.Add([]byte(d.text))
	}
	if len(documents) == 0 {
		f.Fatal("no seeds")
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		err := strict.Check(doc)
		if host := ijson.Check(doc); (err == nil) != (host == nil) {
			t.Errorf("%q: plugin %v, host %v", doc, err, host)
		}
		if err == nil && !json.Valid(doc) {
			t.Errorf("%q is not JSON", doc)
		}
		if fault := (*strict.Error)(nil); err != nil && (!errors.As(err, &fault) || fault.Offset < 0 || fault.Offset > len(doc)) {
			t.Errorf("%q: %#v", doc, err)
		}
	})
}

func TestObject(t *testing.T) {
	type shape struct {
		name  string
		tags  []string
		at    time.Time
		inner string
	}
	read := func(text string) (s shape, err error) {
		if err := strict.Check([]byte(text)); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		err = strict.Object([]byte(text),
			strict.Required("name", strict.Text(&s.name)),
			strict.Optional("tags", strict.Strings(&s.tags)),
			strict.Optional("at", strict.Time(&s.at)),
			strict.Optional("list", strict.List(func(v []byte) error {
				return strict.Object(v, strict.Required("inner", strict.String(&s.inner)))
			})),
		)
		return s, err
	}
	if s, err := read(` {"tags" : [ "a" , "b" ], "name":"\u006e", "at":"2026-01-02T03:04:05.6+01:00", "list":[{"inner":"i"}]}`); err != nil ||
		s.name != "n" || strings.Join(s.tags, "") != "ab" || s.at.UnixMilli() != 1767319445600 || s.inner != "i" {
		t.Errorf("%+v, %v", s, err)
	}
	for text, want := range map[string]string{
		`{}`:                                "name is required",
		`[]`:                                "must be an object",
		`{"name":null}`:                     "name must be a string",
		`{"name":" "}`:                      "name must not be blank",
		`{"name":"n","Name":"n"}`:           `has the unknown member "Name"`,
		`{"name":"n","tags":null}`:          "tags must be an array",
		`{"name":"n","tags":["a",1]}`:       "tags[1] must be a string",
		`{"name":"n","list":[{"inner":1}]}`: "list[0].inner must be a string",
		`{"name":"n","list":[{},{}]}`:       "list[0].inner is required",
		`{"name":"n","at":"2026-02-30T00:00:00Z"}`: "at must be an RFC 3339 time",
		`{"name":"n","at":"2026-02-20 00:00:00Z"}`: "at must be an RFC 3339 time",
		`{"name":"n","at":"2026-02-20t00:00:00z"}`: "at must be an RFC 3339 time",
	} {
		_, err := read(text)
		var fault *strict.MemberError
		if !errors.As(err, &fault) || fault.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestCleanAndCut(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "a\xffb": "a\uFFFDb", "\uFFFE": "\uFFFD", "\U0010FFFF!": "\uFFFD!", "é": "é",
	} {
		if got := strict.Clean(in); got != want {
			t.Errorf("Clean(%q) = %q", in, got)
		}
	}
	for n, want := range []string{"", "a", "a", "aé", "aé", "aé", "aé", "aé😀", "aé😀"} {
		if got := strict.Cut("aé😀", n); got != want {
			t.Errorf("Cut(%d) = %q, want %q", n, got, want)
		}
	}
	if got := strict.Quote("a\u202e\n" + strings.Repeat("x", 100)); !strings.HasPrefix(got, `"a\u202e\n`) || len(got) > 90 {
		t.Errorf("Quote: %s", got)
	}
}
