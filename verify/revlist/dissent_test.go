package revlist

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

func sampleDissents(t testing.TB) *Dissents {
	t.Helper()
	d := &Dissents{}
	for n, reason := range []string{"not reachable here", `"quoted" ∞`, "until the fix is rolled out"} {
		var err error
		if d, err = d.With(Dissent{sha(n), reason, day0.Add(time.Duration(n) * time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func writtenDissents(t testing.TB, d *Dissents) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteDissents(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestDissentsAreCanonicalAndReadBack(t *testing.T) {
	d := sampleDissents(t)
	b := writtenDissents(t, d)
	isCanonical(t, b)
	got, err := ReadDissents(bytes.NewReader(b))
	if err != nil || !reflect.DeepEqual(got, d) {
		t.Errorf("%+v, %v", got, err)
	}
	for n := range b {
		_, err := ReadDissents(bytes.NewReader(b[:n]))
		fault(t, err, "dissent.truncated")
	}
	isCanonical(t, writtenDissents(t, &Dissents{}))
}

func TestDissentRefusals(t *testing.T) {
	const entry = `{"digest":"sha256:` + zeros + `","expiresAt":"2030-01-01T00:00:00Z","reason":"x"}`
	const good = `{"entries":[` + entry + `],"schemaVersion":"switchyard.revocations-dissent/v1"}`
	if _, err := ReadDissents(strings.NewReader(good)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, old, new string
		code           Code
	}{
		{"duplicate", entry, entry + "," + entry, "dissent.duplicate"},
		{"unsorted", entry, strings.Replace(entry, "00", "10", 1) + "," + entry, "dissent.not_sorted"},
		{"no reason", `,"reason":"x"`, ``, "dissent.missing_member"},
		{"no expiry", `,"expiresAt":"2030-01-01T00:00:00Z"`, ``, "dissent.missing_member"},
		{"empty reason", `"x"`, `""`, "dissent.value"},
		{"blank reason", `"x"`, `" "`, "dissent.value"},
		{"every digest", "sha256:" + zeros, "*", "dissent.value"},
		{"unknown member", `"reason"`, `"range":"*","reason"`, "dissent.unknown_member"},
		{"white space", `}]`, `} ]`, "dissent.not_canonical"},
		{"another schema", "dissent/v1", "dissent/v2", "dissent.schema_version"},
	} {
		_, err := ReadDissents(strings.NewReader(strings.Replace(good, c.old, c.new, 1)))
		var e *Error
		if !errors.As(err, &e) || e.Code != c.code {
			t.Errorf("%s: %v, want %s", c.name, err, c.code)
		}
	}
}

func TestSoften(t *testing.T) {
	d := sampleDissents(t)
	now := day0.Add(time.Hour - 1)
	block := func(n int) Entry { return Entry{Kind: Archive, Digest: sha(n), Action: Block} }
	for _, c := range []struct {
		name string
		e    Entry
		pkg  digest.Digest
		now  time.Time
		want Action
		said bool
	}{
		{"exactly that digest", block(1), sha(50), now, Warn, true},
		{"expired this moment", block(1), sha(50), now.Add(1), Block, false},
		{"expired", block(0), sha(50), now, Block, false},
		{"another digest", block(9), sha(1), now, Block, false},
		{"a warning stays one", Entry{Digest: sha(1), Action: Warn}, sha(1), now, Warn, false},
		{"range, the package's digest", Entry{Kind: Version, PluginID: "a", Range: "*", Action: Block}, sha(1), now, Warn, true},
		{"range, another package", Entry{Kind: Version, PluginID: "a", Range: "*", Action: Block}, sha(9), now, Block, false},
		{"signer, no package known", Entry{Kind: Signer, Signer: key(1), Action: Block}, "", now, Block, false},
		{"an unknown action blocks", Entry{Digest: sha(9)}, sha(9), now, Block, false},
	} {
		got, dissent := d.Soften(c.e, c.pkg, c.now)
		if got != c.want || (dissent != nil) != c.said {
			t.Errorf("%s: %s, %v", c.name, got, dissent)
		}
	}
	if a, _ := (&Dissents{}).Soften(block(1), sha(1), now); a != Block {
		t.Error("no dissents soften")
	}
}

func TestDissentEdits(t *testing.T) {
	d := sampleDissents(t)
	before := writtenDissents(t, d)
	again, err := d.With(Dissent{sha(1), "longer", day0.AddDate(1, 0, 0)})
	if err != nil || len(again.Entries) != 3 {
		t.Errorf("%+v, %v", again, err)
	}
	less, ok := again.Without(sha(1))
	if !ok || len(less.Entries) != 2 {
		t.Errorf("%+v", less)
	}
	if _, ok := less.Without(sha(1)); ok {
		t.Error("removed twice")
	}
	for _, bad := range []Dissent{{"", "x", day0}, {sha(1), "", day0}, {sha(1), "x", time.Time{}}, {sha(1), "x\n", day0}, {sha(1), "x", day0.Add(1)}} {
		if _, err := d.With(bad); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
	if !bytes.Equal(before, writtenDissents(t, d)) {
		t.Error("an edit changed what it was made of")
	}
	full := &Dissents{}
	for n := range MaxDissents {
		full.Entries = append(full.Entries, Dissent{nth(n).Digest, strings.Repeat(`"`, MaxText), day0})
	}
	_, err = full.With(Dissent{nth(MaxDissents).Digest, "x", day0})
	fault(t, err, "dissent.too_many")
	if _, err := ReadDissents(bytes.NewReader(writtenDissents(t, full))); err != nil {
		t.Errorf("the largest file: %v", err)
	}
}
