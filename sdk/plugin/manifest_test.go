package plugin

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

func document(t *testing.T, m Manifest) string {
	t.Helper()
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestParseManifest(t *testing.T) {
	good := document(t, sample())
	m, err := ParseManifest([]byte(good))
	if err != nil || !reflect.DeepEqual(m, sample()) {
		t.Fatalf("%+v, %v", m, err)
	}
	replace := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("%q is not in %s", old, good)
		}
		return strings.Replace(good, old, new, 1)
	}
	for name, text := range map[string]string{
		"empty":             "",
		"byte order mark":   "\xEF\xBB\xBF" + good,
		"UTF-16":            "{\x00}\x00",
		"unknown member":    replace(`{`, `{"extra":1,`),
		"other case":        replace(`"id"`, `"ID"`),
		"twice":             replace(`"id"`, `"id":"sample","id"`),
		"missing":           replace(`"arguments":[],`, ``),
		"null":              replace(`"arguments":[]`, `"arguments":null`),
		"wrong type":        replace(`"arguments":[]`, `"arguments":"-v"`),
		"wrong element":     replace(`"arguments":[]`, `"arguments":[1]`),
		"trailing document": good + "{}",
		"array":             "[" + good + "]",
		"too large":         good + strings.Repeat(" ", manifest.MaxBytes),
	} {
		if _, err := ParseManifest([]byte(text)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	var invalid *manifest.Invalid
	if _, err := ParseManifest([]byte(replace(`"id":"sample"`, `"id":"S"`))); !errors.As(err, &invalid) {
		t.Errorf("an invalid id gives %v", err)
	}
	for _, change := range []func(*Manifest){
		func(m *Manifest) { m.Version = "--force" }, func(m *Manifest) { m.Version = "../../x" },
		func(m *Manifest) { m.Version = "1\u200b" }, func(m *Manifest) { m.Name = "\u3164" },
	} {
		m := sample()
		change(&m)
		if _, err := ParseManifest([]byte(document(t, m))); !errors.As(err, &invalid) {
			t.Errorf("name %q, version %q: %v", m.Name, m.Version, err)
		}
	}
	if _, err := ParseManifest([]byte(good + strings.Repeat(" ", manifest.MaxBytes-len(good)))); err != nil {
		t.Errorf("exactly the limit: %v", err)
	}
}

func TestPackageManifest(t *testing.T) {
	dir := t.TempDir()
	self := filepath.Join(dir, "bin", "sample")
	write := func(path, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	write(self, "#!")
	if _, err := packageManifest(self); !errors.Is(err, ErrNoPackage) {
		t.Errorf("without plugin.json: %v", err)
	}
	write(filepath.Join(dir, "plugin.json"), document(t, sample()))
	other := sample()
	other.Executable = "elsewhere"
	write(filepath.Join(dir, "bin", "plugin.json"), document(t, other))
	if m, err := packageManifest(self); err != nil || m.Executable != "bin/sample" {
		t.Errorf("%+v, %v", m, err)
	}
	write(filepath.Join(dir, "plugin.json"), "{")
	if _, err := packageManifest(self); err == nil || errors.Is(err, ErrNoPackage) {
		t.Errorf("a broken plugin.json: %v", err)
	}
	// The test's own program stands in no package.
	if _, err := PackageManifest(); !errors.Is(err, ErrNoPackage) {
		t.Errorf("the test program: %v", err)
	}
}
