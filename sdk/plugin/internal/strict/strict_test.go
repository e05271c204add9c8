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

// TestCorpus compares with the published verdicts, where the corpus is there.
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
	n := 0
	for row := range strings.Lines(string(expected)) {
		columns := strings.Split(strings.TrimSpace(row), "\t")
		files, _ := filepath.Glob(filepath.Join(corpus, "test_*", columns[0]))
		if len(files) == 0 {
			continue
		}
		doc, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		n++
		// The corpus speaks of I-JSON; the host's reader is what must agree.
		if got, want := strict.Check(doc) == nil, ijson.Check(doc) == nil; got != want {
			t.Errorf("%s: accepted %v, by the host %v", columns[0], got, want)
		}
		if strings.HasPrefix(columns[2], "reject") && strict.Check(doc) == nil {
			t.Errorf("%s: accepted, the corpus says %s", columns[0], columns[2])
		}
	}
	if n < 300 {
		t.Errorf("compared only %d documents", n)
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
