package policy

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/lockfile/tomlstrict"
	"github.com/switchyard-plugins/switchyard/lockfile/tomlstrict/tomltest"
)

const (
	keyA = "sha256:8f2a3f0d4c0e6b8e9d1c5a7b3e2f4d6c8a0b1c2d3e4f5a6b7c8d9e0f1a2b3c4d"
	keyB = "sha256:1b9d7f0e2c4a6b8d0f1e3c5a7b9d2f4e6c8a0b1d3f5e7c9a2b4d6f8e0c1a3b5d"
)

// parseNarrowing reads [policy] as the reader of switchyard.toml does.
func parseNarrowing(name string, data []byte) (*Narrowing, error) {
	doc, err := tomlstrict.Parse(name, data, MaxBytes)
	if err != nil {
		return nil, err
	}
	t := doc.Read(doc.Root, "the project")
	t.Optional("version", tomlstrict.Integer)
	table := t.Optional("policy", tomlstrict.Table)
	t.Close()
	if table == nil {
		return nil, doc.Err()
	}
	n := ParseNarrowing(doc, table)
	return n, doc.Err()
}

func TestInvalidPolicies(t *testing.T) {
	tomltest.Run(t, "testdata/policy/invalid/*.toml", func(name string, data []byte) error {
		p, err := Parse(name, data)
		if (p == nil) == (err == nil) {
			t.Errorf("%s: %v and %v", name, p, err)
		}
		return err
	})
}

func TestInvalidNarrowings(t *testing.T) {
	tomltest.Run(t, "testdata/narrowing/invalid/*.toml", func(name string, data []byte) error {
		_, err := parseNarrowing(name, data)
		return err
	})
}

func fullPolicy() *Policy {
	return &Policy{
		Signature: Required, Threshold: 2, SBOM: Required,
		MaxListAge: 168 * time.Hour, CoolDown: 72*time.Hour + 30*time.Minute,
		DeniedLicences: []string{"AGPL-3.0-only", "SSPL-1.0", "GPL-2.0+"},
		ListsStale:     Reactions{Trust: Warn},
		Publishers: []Publisher{
			{
				Plugins:  []IDPattern{"com.example.*", "repo-facts"},
				Identity: "https://github.com/example/plugins/.github/workflows/release.yml@refs/tags/*",
				Issuer:   "https://token.actions.githubusercontent.com",
			},
			{Plugins: []IDPattern{"*"}, Key: keyA},
		},
		Builders: [][]PrefixPattern{{"https://github.com/actions/runner/github-hosted", "https://builders.example/*"}},
		Sources:  [][]PrefixPattern{{"git+https://github.com/example/*"}},
	}
}

func TestValidPolicies(t *testing.T) {
	want := map[string]*Policy{
		"testdata/policy/valid/minimal.toml": Default(),
		"testdata/policy/valid/full.toml":    fullPolicy(),
	}
	for _, file := range tomltest.Files(t, "testdata/policy/valid/*.toml") {
		for _, text := range [][]byte{read(t, file), tomltest.CRLF(read(t, file))} {
			got, err := Parse(file, text)
			if err != nil || !reflect.DeepEqual(got, want[file]) {
				t.Errorf("%s: %+v, %v", file, got, err)
			}
		}
		delete(want, file)
	}
	for file := range want {
		t.Errorf("no %s", file)
	}
}

func neutral() *Narrowing {
	return &Narrowing{Signature: Allowed, Threshold: 1, SBOM: Allowed, ListsStale: Reactions{Warn, Warn, Warn, Warn}}
}

func TestValidNarrowings(t *testing.T) {
	want := map[string]*Narrowing{
		"testdata/narrowing/valid/empty.toml": neutral(),
		"testdata/narrowing/valid/full.toml": {
			Signature: Required, Threshold: 2, SBOM: Required,
			MaxListAge: 24 * time.Hour, CoolDown: 24 * time.Hour,
			DeniedLicences: []string{"SSPL-1.0"},
			ListsStale:     Reactions{Install: Warn, Trust: Warn, CI: Warn, Run: Refuse},
			Publishers:     []SignerPattern{"https://github.com/example/plugins/*", keyA},
			Sources:        []PrefixPattern{"git+https://github.com/example/plugins@*"},
		},
	}
	for _, file := range tomltest.Files(t, "testdata/narrowing/valid/*.toml") {
		got, err := parseNarrowing(file, read(t, file))
		if err != nil || !reflect.DeepEqual(got, want[file]) {
			t.Errorf("%s: %+v, %v", file, got, err)
		}
		delete(want, file)
	}
	for file := range want {
		t.Errorf("no %s", file)
	}
}

func TestFaultHasPosition(t *testing.T) {
	_, err := Parse("dir/policy.toml", []byte("version = 1\nsbom = \"allowed\"\n  Signature = \"required\"\n"))
	var fault *tomlstrict.SyntaxError
	if !errors.As(err, &fault) || fault.File != "dir/policy.toml" || fault.Line != 3 || fault.Column != 3 {
		t.Errorf("%v", err)
	}
	if !strings.HasPrefix(fmt.Sprint(err), "dir/policy.toml:3:3: ") {
		t.Errorf("%v", err)
	}
}

func TestVersionAndSizeCauses(t *testing.T) {
	if _, err := Parse("p", []byte("version = 9\n")); !errors.Is(err, ErrVersion) {
		t.Errorf("version 9: %v", err)
	}
	if _, err := Parse("p", []byte("version = 1\n#"+strings.Repeat("x", MaxBytes))); !errors.Is(err, tomlstrict.ErrTooLarge) {
		t.Errorf("large file: %v", err)
	}
	many := "version = 1\n" + strings.Repeat("[[publisher]]\nplugins = [\"a\"]\nkey = \""+keyA+"\"\n", MaxPublishers)
	if _, err := Parse("p", []byte(many)); err != nil {
		t.Errorf("%d publishers: %v", MaxPublishers, err)
	}
	if _, err := Parse("p", []byte(many+"[[publisher]]\nplugins = [\"a\"]\nkey = \""+keyA+"\"\n")); !errors.Is(err, tomlstrict.ErrTooLarge) {
		t.Errorf("%d publishers: %v", MaxPublishers+1, err)
	}
	list := func(n int) []byte {
		var b strings.Builder
		b.WriteString("version = 1\n[provenance]\nsource = [")
		for i := range n {
			fmt.Fprintf(&b, "\"s%d\",", i)
		}
		b.WriteString("]\n")
		return []byte(b.String())
	}
	if _, err := Parse("p", list(MaxPatterns)); err != nil {
		t.Error(err)
	}
	if _, err := Parse("p", list(MaxPatterns+1)); !errors.Is(err, tomlstrict.ErrTooLarge) {
		t.Errorf("%d patterns: %v", MaxPatterns+1, err)
	}
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// FuzzParse: whatever the text, a reader gives a value or faults with positions, the
// same for LF and CRLF, and what it gives can be used.
func FuzzParse(f *testing.F) {
	seeds, policies, narrowings := 0, 0, 0
	for _, glob := range []string{"testdata/policy/*/*.toml", "testdata/narrowing/*/*.toml"} {
		for _, file := range tomltest.Files(f, glob) {
			text := read(f, file)
			f.Add(text)
			seeds++
			if _, err := Parse("p", text); err == nil {
				policies++
			}
			if _, err := parseNarrowing("n", text); err == nil {
				narrowings++
			}
		}
	}
	if seeds < 30 || policies < 2 || narrowings < 2 {
		f.Fatalf("only %d seeds, of which %d are policies and %d narrowings", seeds, policies, narrowings)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse("p", data)
		checkFaults(t, err)
		if (p == nil) == (err == nil) {
			t.Fatalf("%v and %v", p, err)
		}
		n, narrowErr := parseNarrowing("n", data)
		checkFaults(t, narrowErr)
		if narrowErr != nil {
			n = nil
		}
		if p == nil {
			p = Default()
		}
		for seed := range uint64(3) {
			in := newRandom(seed).input()
			if narrow := Evaluate(p.Narrow(n), in); narrow.Accepted() && !Evaluate(p, in).Accepted() {
				t.Fatalf("narrowing widened: %+v", narrow)
			}
		}
		if err == nil && !strings.Contains(string(data), "\r") {
			again, err := Parse("p", tomltest.CRLF(data))
			if err != nil || !reflect.DeepEqual(again, p) {
				t.Fatalf("with CRLF: %+v, %v", again, err)
			}
		}
	})
}

func checkFaults(t *testing.T, err error) {
	if err == nil {
		return
	}
	var faults tomlstrict.Faults
	if !errors.As(err, &faults) || len(faults) == 0 {
		t.Fatalf("%T: %v", err, err)
	}
	for _, one := range faults {
		if one.Line < 1 || one.Column < 1 || one.Message == "" {
			t.Fatalf("%+v", one)
		}
	}
}
