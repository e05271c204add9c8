package secret_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/switchyard-plugins/switchyard/runtime/secret"
)

const canary = "canary-4711"

func store(t *testing.T) *secret.Store {
	t.Helper()
	dir := t.TempDir()
	return &secret.Store{Dir: dir, Keys: filepath.Join(dir, "keys"), Lookup: func(name string) (string, bool) {
		return map[string]string{"TOKEN": canary, "EMPTY": ""}[name], name == "TOKEN" || name == "EMPTY"
	}}
}

// A kept secret is there for its plugin and its name alone, and nowhere in clear.
func TestKept(t *testing.T) {
	s := store(t)
	if err := s.Set("a", "/token", []byte(canary)); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Resolve("a", secret.Ref{Provider: secret.Kept, Name: "/token"}); err != nil || got != canary {
		t.Errorf("%q, %v", got, err)
	}
	for _, other := range []struct{ plugin, name string }{{"b", "/token"}, {"a", "/other"}} {
		var none *secret.Unresolved
		if _, err := s.Resolve(other.plugin, secret.Ref{Provider: secret.Kept, Name: other.name}); !errors.As(err, &none) {
			t.Errorf("%v: %v", other, err)
		}
	}
	file := filepath.Join(s.Dir, "secrets", "a.json")
	sealed, err := os.ReadFile(file)
	if err != nil || bytes.Contains(sealed, []byte(canary)) {
		t.Fatalf("%s, %v", sealed, err)
	}
	// Another plugin's file, or another name, does not open it.
	if err := os.WriteFile(filepath.Join(s.Dir, "secrets", "b.json"), sealed, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Resolve("b", secret.Ref{Provider: secret.Kept, Name: "/token"}); err == nil || got != "" || !strings.Contains(err.Error(), "given again") {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.WriteFile(file, bytes.Replace(sealed, []byte("/token"), []byte("/other"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Resolve("a", secret.Ref{Provider: secret.Kept, Name: "/other"}); err == nil || got != "" {
		t.Errorf("%q, %v", got, err)
	}
	if err := s.Set("a", "/token", []byte("new")); err != nil {
		t.Fatal(err)
	}
	if names, err := s.Names("a"); err != nil || strings.Join(names, " ") != "/other /token" {
		t.Errorf("%q, %v", names, err)
	}
	if err := s.Remove("a", "/other"); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove("a", ""); err != nil {
		t.Fatal(err)
	}
	if names, err := s.Names("a"); err != nil || names != nil {
		t.Errorf("%q, %v", names, err)
	}
}

// Without the key, with another, and where others can read, nothing is opened.
func TestKeyIsHeldTo(t *testing.T) {
	s := store(t)
	if err := s.Set("a", "n", []byte(canary)); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(s.Keys, secret.KeyFile)
	ref := secret.Ref{Provider: secret.Kept, Name: "n"}
	if runtime.GOOS != "windows" {
		for _, file := range []string{key, filepath.Join(s.Dir, "secrets", "a.json")} {
			if err := os.Chmod(file, 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Resolve("a", ref); err == nil || !strings.Contains(err.Error(), "can be read by others") {
				t.Errorf("%s: %v", file, err)
			}
			if err := os.Chmod(file, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	before, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, []byte(strings.Repeat("A", 43)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Resolve("a", ref); err == nil || got != "" {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Resolve("a", ref); err == nil || !strings.Contains(err.Error(), "is gone") {
		t.Error(err)
	}
	if err := os.WriteFile(key, before, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Resolve("a", ref); err != nil || got != canary {
		t.Errorf("%q, %v", got, err)
	}
}

// Of many that are set at the same moment none is lost, and all are under one key.
func TestSetAtOnce(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("edits of one moment are not ordered there")
	}
	s := store(t)
	const n = 16
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if err := s.Set("a", string(rune('a'+i)), []byte(canary)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for i := range n {
		if got, err := s.Resolve("a", secret.Ref{Provider: secret.Kept, Name: string(rune('a' + i))}); err != nil || got != canary {
			t.Errorf("%d: %q, %v", i, got, err)
		}
	}
}

func TestResolve(t *testing.T) {
	s := store(t)
	file := filepath.Join(s.Dir, "token")
	if err := os.WriteFile(file, []byte(canary+"\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(s.Dir, "binary")
	if err := os.WriteFile(binary, []byte{0xff}, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ref  secret.Ref
		want string // "" for none
	}{
		{secret.Ref{Provider: "env", Name: "TOKEN"}, canary},
		{secret.Ref{Provider: "file", Name: file}, canary},
		{secret.Ref{Provider: "env", Name: "EMPTY"}, ""},
		{secret.Ref{Provider: "env", Name: "NONE"}, ""},
		{secret.Ref{Provider: "env", Name: "TOKEN", Version: "2"}, ""},
		{secret.Ref{Provider: "file", Name: "token"}, ""},
		{secret.Ref{Provider: "file", Name: file + "2"}, ""},
		{secret.Ref{Provider: "file", Name: s.Dir}, ""},
		{secret.Ref{Provider: "file", Name: binary}, ""},
		{secret.Ref{Provider: "vault", Name: "x"}, ""},
	} {
		got, err := s.Resolve("a", c.ref)
		var none *secret.Unresolved
		if got != c.want || (c.want == "") != errors.As(err, &none) {
			t.Errorf("%+v: %q, %v", c.ref, got, err)
		}
		if err != nil && strings.Contains(err.Error(), canary) {
			t.Errorf("%+v: %v", c.ref, err)
		}
	}
}

func TestCheck(t *testing.T) {
	for value, ok := range map[string]bool{"x": true, "two\nlines": true, "": false, "\xff": false, "\uffff": false, strings.Repeat("x", secret.Max): true, strings.Repeat("x", secret.Max+1): false} {
		if err := secret.Check([]byte(value)); (err == nil) != ok || err != nil && !errors.Is(err, secret.ErrValue) {
			t.Errorf("%.10q: %v", value, err)
		}
	}
	for in, want := range map[string]string{"x\n": "x", "x\r\n": "x", "x\n\n": "x\n", "x": "x", "\n": "", "": ""} {
		if got := string(secret.Trim([]byte(in))); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
	if ref, ok := secret.RefOf(secret.Ref{Provider: "env", Name: "N"}.JSON()); !ok || ref != (secret.Ref{Provider: "env", Name: "N"}) {
		t.Errorf("%+v", ref)
	}
	if _, ok := secret.RefOf([]byte(`"text"`)); ok {
		t.Error("a text is no reference")
	}
}
