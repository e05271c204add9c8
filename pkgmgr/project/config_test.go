package project

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/lockfile/tomlstrict/tomltest"
)

func TestInvalidFixtures(t *testing.T) {
	tomltest.Run(t, "testdata/invalid/*.toml", func(name string, data []byte) error {
		_, err := ParseConfig(name, data)
		return err
	})
}

func TestValidFixtures(t *testing.T) {
	want := map[string]*Config{
		"testdata/valid/minimal.toml": {Plugins: map[string]Wanted{}},
		"testdata/valid/inline.toml": {Plugins: map[string]Wanted{
			"repo-facts":    {Source: "plugins/repo-facts", Scopes: []string{}},
			"licence-audit": {Source: "plugins/licence-audit", Version: "2.0.0"},
		}},
		"testdata/valid/full.toml": {
			Platforms: []string{"linux/amd64", "darwin/arm64"},
			Plugins: map[string]Wanted{
				"repo-facts": {
					Source: "dist/repo-facts-{version}-{os}-{arch}.tar.zst", Version: "^1.2",
					Scopes: []string{"project.files.read", "project.metadata.read"},
				},
				"licence.audit": {Source: "https://plugins.example/licence.audit-{version}.tar.zst"},
			},
			Lists: []ListURL{{dir: "https://security.example.com/lists/", Name: "list.json"}},
		},
	}
	for _, file := range tomltest.Files(t, "testdata/valid/*.toml") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range [][]byte{data, tomltest.CRLF(data)} {
			got, err := ParseConfig(file, text)
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

// TestDocumentedConfig reads the second example of the format's page.
func TestDocumentedConfig(t *testing.T) {
	const page = "../../docs/lockfile.md"
	c, err := ParseConfig(page, tomltest.Blocks(t, page)[1])
	if err != nil || len(c.Plugins) != 1 || len(c.Platforms) != 2 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestConfigVersionIsACause(t *testing.T) {
	if _, err := ParseConfig("x", []byte("version = 3")); !errors.Is(err, ErrVersion) {
		t.Error(err)
	}
	if _, err := ParseConfig("x", []byte("<<<<<<< x")); !errors.Is(err, lockfile.ErrConflict) {
		t.Error(err)
	}
}

func TestAccepts(t *testing.T) {
	for _, c := range []struct {
		wanted, version string
		want            bool
	}{
		{"", "anything", true}, {"1.2.3", "1.2.3", true}, {"1.2.3", "1.2.4", false},
		{"^1", "1.2.3", true}, {"^1", "2.0.0", false}, {"nightly", "nightly", true}, {">>", "1.0.0", false},
	} {
		if got := (Wanted{Version: c.wanted}).Accepts(c.version); got != c.want {
			t.Errorf("%q accepts %q: %v", c.wanted, c.version, got)
		}
	}
}

func TestDrift(t *testing.T) {
	c := &Config{
		Platforms: []string{"linux/amd64", "darwin/arm64"},
		Plugins: map[string]Wanted{
			"absent": {Source: "x", Version: "^1"},
			"fits":   {Source: "./x", Version: "^1", Scopes: []string{"a", "b"}},
			"open":   {Source: "x"},
			"drifts": {Source: "y", Version: "^2", Scopes: []string{}},
		},
	}
	entry := func(id string, keys ...string) lockfile.Plugin {
		p := lockfile.Plugin{ID: id, Version: "1.5.0", Source: "x", Grants: []string{"a", "b"}, Platforms: map[string]lockfile.Platform{}}
		for _, key := range keys {
			p.Platforms[key] = lockfile.Platform{}
		}
		return p
	}
	lock := &lockfile.File{}
	for _, p := range []lockfile.Plugin{entry("fits", lockfile.Any), entry("open", c.Platforms...), entry("drifts", "linux/amd64"), entry("pinned", "linux/386")} {
		lock = lock.With(p)
	}
	want := []lockfile.Change{
		{Kind: lockfile.Added, ID: "absent", Now: "^1"},
		{Kind: lockfile.VersionChanged, ID: "drifts", Was: "1.5.0", Now: "^2"},
		{Kind: lockfile.SourceChanged, ID: "drifts", Was: "x", Now: "y"},
		{Kind: lockfile.GrantsChanged, ID: "drifts", Was: "a b", Now: ""},
		{Kind: lockfile.PlatformMissing, ID: "drifts", Platform: "darwin/arm64"},
		{Kind: lockfile.Removed, ID: "pinned", Was: "1.5.0"},
	}
	if got := c.Drift(lock); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
	if got := c.Drift(nil); len(got) != 4 {
		t.Errorf("without a lock: %v", got)
	}
}

func TestExpand(t *testing.T) {
	for _, c := range []struct {
		source, version, platform string
		want                      string // "!" and a part of the message for an error
	}{
		{"dist/a-{version}-{os}-{arch}.zip", "1.0.0", "linux/amd64", "dist/a-1.0.0-linux-amd64.zip"},
		{"dist/a.zip", "", "", "dist/a.zip"},
		{"{version}/{version}", "1.0.0-rc.1+b", "any", "1.0.0-rc.1+b/1.0.0-rc.1+b"},
		{"https://plugins.example/{version}/{os}", "1", "js/wasm", "https://plugins.example/1/js"},
		{"{version}", "", "linux/amd64", "!{version}: placeholder without a value"},
		{"{os}", "1", "any", "!{os}: placeholder without a value"},
		{"{arch}", "1", "", "!{arch}: placeholder without a value"},
		{"{os}", "1", "linux", "!is not \"any\""},
		{"{version}", "../../x", "", "!cannot stand in a path"},
		{"{version}", "..", "", "!cannot stand in a path"},
		{"{version}", `a\b`, "", "!cannot stand in a path"},
		{"{version}", "{os}", "linux/amd64", "!cannot stand in a path"},
		{"https://h/{version}", "x?token=1", "", "!cannot stand in a path"},
		{"{version}", "~", "", "!starts with"},
		{"{name}", "1", "", "!unknown placeholder"},
		{"", "1", "", "!must not be empty"},
	} {
		got, err := Expand(c.source, c.version, c.platform)
		if part, isErr := strings.CutPrefix(c.want, "!"); isErr {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%q %q %q: %q, %v", c.source, c.version, c.platform, got, err)
			}
			if strings.Contains(part, "without a value") && !errors.Is(err, ErrOpen) {
				t.Errorf("%v is no ErrOpen", err)
			}
		} else if got != c.want || err != nil {
			t.Errorf("%q %q %q: %q, %v", c.source, c.version, c.platform, got, err)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	seeds := 0
	for _, glob := range []string{"testdata/valid/*.toml", "testdata/invalid/*.toml"} {
		for _, file := range tomltest.Files(f, glob) {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data, "repo-facts", "1.0.0")
			seeds++
		}
	}
	for _, c := range edits() {
		f.Add([]byte(c.before), "a", "^1")
		seeds++
	}
	if seeds < 50 {
		f.Fatalf("only %d seeds", seeds)
	}
	f.Fuzz(func(t *testing.T, text []byte, id, version string) {
		before, err := ParseConfig("fuzz", text)
		if err != nil {
			return
		}
		added, err := AddPlugin("fuzz", text, id, Wanted{Source: "x", Version: version, Scopes: []string{}})
		if err != nil {
			return
		}
		removed, err := RemovePlugin("fuzz", added, id)
		if err != nil {
			t.Fatalf("%v: %q became %q", err, text, added)
		}
		after, err := ParseConfig("fuzz", removed)
		delete(before.Plugins, id)
		if err != nil || !reflect.DeepEqual(before, after) {
			t.Fatalf("%v: %q became %q and %q", err, text, added, removed)
		}
		for id := range before.Plugins {
			if _, err := RemovePlugin("fuzz", text, id); err != nil {
				t.Fatalf("removing %q from %q: %v", id, text, err)
			}
			if _, err := AddPlugin("fuzz", text, id, Wanted{Source: "new"}); err != nil {
				t.Fatalf("updating %q in %q: %v", id, text, err)
			}
		}
	})
}
