package wire_test

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/gowebpki/jcs"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

func TestTime(t *testing.T) {
	for text, want := range map[string]time.Time{
		"2026-07-11T16:21:00Z":        time.Date(2026, 7, 11, 16, 21, 0, 0, time.UTC),
		"2024-02-29T00:00:00.1Z":      time.Date(2024, 2, 29, 0, 0, 0, 1e8, time.UTC),
		"2000-02-29T23:59:59.999999Z": time.Date(2000, 2, 29, 23, 59, 59, 999999000, time.UTC),
		"0001-01-01T00:00:00Z":        {},
	} {
		got, ok := wire.ParseTime(text)
		if !ok || !got.Equal(want) {
			t.Errorf("%s: %v %v", text, got, ok)
		}
		if again := wire.FormatTime(got); again != text {
			t.Errorf("%s is written as %s", text, again)
		}
	}
	for _, text := range []string{"", "2026-07-11", "2026-07-11T16:21Z", "2026-07-11T16:21:00", "2026-07-11T16:21:00+00:00", "2026-07-11t16:21:00Z",
		"2026-07-11T16:21:00z", "2026-02-29T16:21:00Z", "1900-02-29T16:21:00Z", "2026-04-31T16:21:00Z", "2026-00-01T16:21:00Z", "2026-13-01T16:21:00Z",
		"2026-01-00T16:21:00Z", "2026-07-11T24:00:00Z", "2026-07-11T23:60:00Z", "2016-12-31T23:59:60Z", "2026-07-11T16:21:00.Z", "2026-07-11T16:21:00.1234567Z",
		"2026-07-11T16:21:00,1Z", "0000-01-01T00:00:00Z", "2026-07-11 16:21:00Z", "+026-07-11T16:21:00Z", "2026-07-11T16:21:0:Z", "2026-07-11T16:21:00.12a456Z"} {
		if got, ok := wire.ParseTime(text); ok {
			t.Errorf("%q is read as %v", text, got)
		}
	}
	for at, want := range map[time.Time]string{
		time.Date(2026, 1, 2, 3, 4, 5, 999, time.FixedZone("", 3600)): "2026-01-02T02:04:05Z",
		time.Date(12026, 1, 2, 3, 4, 5, 0, time.UTC):                  "9999-12-31T23:59:59.999999Z",
		time.Date(-1, 1, 2, 3, 4, 5, 0, time.UTC):                     "0001-01-01T00:00:00Z",
		time.Date(2026, 1, 2, 3, 4, 5, 120_000_000, time.UTC):         "2026-01-02T03:04:05.12Z",
	} {
		if got := wire.FormatTime(at); got != want {
			t.Errorf("%v: %s, want %s", at, got, want)
		}
	}
}

func TestUUID(t *testing.T) {
	var last string
	for i := range 5000 {
		u := wire.NewUUID()
		text := u.String()
		theirs, err := uuid.Parse(text)
		if err != nil || theirs.Version() != 7 || theirs.Variant() != uuid.RFC4122 || text <= last {
			t.Fatalf("%d: %s after %s: %v", i, text, last, err)
		}
		sec, nsec := theirs.Time().UnixTime()
		if age := time.Since(time.Unix(sec, nsec)); age < -time.Second || age > time.Minute {
			t.Fatalf("%s is of %v ago", text, age)
		}
		if again, ok := wire.ParseUUID(strings.ToUpper(text)); !ok || again != u {
			t.Fatalf("%s is read as %s", text, again)
		}
		last = text
	}
	for _, text := range []string{"", "0197f9d26f317cb1a6125f5b7f7b8d19", "{0197f9d2-6f31-7cb1-a612-5f5b7f7b8d19}", "0197f9d2-6f31-7cb1-a612-5f5b7f7b8d1",
		"0197f9d2-6f31-7cb1-a612-5f5b7f7b8d1g", "0197f9d2_6f31-7cb1-a612-5f5b7f7b8d19", "0197f9d2-6f31-7cb1-a6125-f5b7f7b8d19", "0197f9d2-6f31-7cb1-a612-5f5b7f7b8d1é"} {
		if u, ok := wire.ParseUUID(text); ok {
			t.Errorf("%q is read as %s", text, u)
		}
	}
}

func TestVersion(t *testing.T) {
	for text, want := range map[string]wire.Version{"1.0": {1, 0}, "0.10": {0, 10}, "12.345": {12, 345}} {
		if v, ok := wire.ParseVersion(text); !ok || v != want || v.String() != text {
			t.Errorf("%s: %v %v", text, v, ok)
		}
	}
	for _, text := range []string{"", "1", "1.", ".1", "1.0.0", "01.0", "1.00", "1.x", "-1.0", "1.+1", " 1.0", "1.0000001", "1234567.0"} {
		if v, ok := wire.ParseVersion(text); ok {
			t.Errorf("%q is read as %v", text, v)
		}
	}
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]string{"": "", "AA": "\x00", "_-8": "\xff\xef", "aGk": "hi"} {
		if b, ok := wire.DecodeBytes(text); !ok || string(b) != want || wire.EncodeBytes(b) != text {
			t.Errorf("%q: %q %v", text, b, ok)
		}
	}
	for _, text := range []string{"A", "AA==", "AB", "+/8", "aGl", "a\nGk", "aGk\r\n", "aG k"} {
		if b, ok := wire.DecodeBytes(text); ok {
			t.Errorf("%q is read as %q", text, b)
		}
	}
}

func corpus(t testing.TB, name string) string {
	t.Helper()
	dir := filepath.Join("../../../../shared/corpora", name)
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		t.Logf("NOTE: the corpus %s is not here; its vectors were not compared", name)
		t.Skip("no " + dir)
	}
	return dir
}

func TestCanonicalCorpus(t *testing.T) {
	dir := corpus(t, "jcs")
	inputs, _ := filepath.Glob(filepath.Join(dir, "input", "*.json"))
	if len(inputs) < 6 {
		t.Fatalf("only %d inputs", len(inputs))
	}
	for _, input := range inputs {
		doc, err := os.ReadFile(input)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(dir, "output", filepath.Base(input)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := wire.Canonical(doc)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v\n%s\n%s", filepath.Base(input), err, got, want)
		}
	}
	rows, err := os.ReadFile(filepath.Join(dir, "es6_1k.txt"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for row := range strings.Lines(string(rows)) {
		hex, want, ok := strings.Cut(strings.TrimSpace(row), ",")
		if !ok {
			continue
		}
		bits, err := strconv.ParseUint(hex, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		n++
		if got := string(wire.AppendNumber(nil, math.Float64frombits(bits))); got != want {
			t.Errorf("%s: %s, want %s", hex, got, want)
		}
	}
	if n < 1000 {
		t.Errorf("only %d numbers", n)
	}
}

var canonicalSeeds = []string{`{"b":1,"a":[true,null,"\u20ac\/\u0001"],"\ud83d\ude00":1,"\ufb33":2,"":{}}`, ` [ 1e2 , -0.0, 4.50, 1E-7, 123456789012345 ] `, `"x"`, `null`,
	`{"a":{"b":{"c":[]}}}`, `[{},{ }]`, `9007199254740993`, `1e21`, `5e-324`, `{"\u0061":1,"b":"\u0062"}`}

func FuzzCanonical(f *testing.F) {
	for _, s := range canonicalSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		got, err := wire.Canonical(doc)
		if err != nil {
			if code(err) == "" {
				t.Errorf("%q: %v is no fault", doc, err)
			}
			return
		}
		if theirs, err := jcs.Transform(doc); err == nil && !bytes.Equal(got, theirs) {
			t.Errorf("%q:\n%s\n%s", doc, got, theirs)
		}
		again, err := wire.Canonical(got)
		if err != nil || !bytes.Equal(got, again) {
			t.Errorf("%q is not canonical: %q %v", got, again, err)
		}
	})
}

func TestRequestDigest(t *testing.T) {
	a, err := wire.RequestDigest("catalog.index", "start", "1.0", []byte(`{"b":1.0,"a":2}`))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := wire.RequestDigest("catalog.index", "start", "1.0", []byte(`{ "a":2, "b":1 }`))
	want, _ := wire.Digest([]byte(`{"capabilityId":"catalog.index","operationName":"start","operationVersion":"1.0","payload":{"a":2,"b":1}}`))
	if a != b || a != want || !wire.IsDigest([]byte(a)) {
		t.Errorf("%s %s %s", a, b, want)
	}
	if c, _ := wire.RequestDigest("catalog.index", "start", "1.0", []byte(`{"a":3,"b":1}`)); c == a {
		t.Error("another payload has the same digest")
	}
	if _, err := wire.RequestDigest("a", "b", "1.0", []byte(`{"a":1,"a":1}`)); code(err) != wire.CodeJSONDuplicateName {
		t.Errorf("duplicate names: %v", err)
	}
}
