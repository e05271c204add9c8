package lockfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/switchyard-plugins/switchyard/lockfile/textfile"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

func entry(seed string) Platform {
	return Platform{
		Archive: digest.Of([]byte(seed + "a")), Package: digest.Of([]byte(seed + "p")),
		Manifest: digest.Of([]byte(seed + "m")), Fingerprint: digest.Of([]byte(seed + "f")),
	}
}

func plugin(id, version string, platforms ...string) Plugin {
	p := Plugin{ID: id, Version: version, Source: "dist/" + id + ".zip", Grants: []string{"project.metadata.read"}}
	p.Platforms = map[string]Platform{}
	for _, key := range platforms {
		p.Platforms[key] = entry(id + version + key)
	}
	return p
}

func TestWithPlatform(t *testing.T) {
	f := (&File{}).With(plugin("a", "1", "linux/amd64")).With(plugin("b", "1", Any))
	g, err := f.WithPlatform("a", "darwin/arm64", entry("x"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Change{{Kind: PlatformAdded, ID: "a", Platform: "darwin/arm64", Now: string(entry("x").Package)}}
	if got := Diff(f, g); !slices.Equal(got, want) {
		t.Errorf("adding a platform changes %v", got)
	}
	for _, c := range []struct {
		id, key string
		err     error
	}{
		{"c", "linux/amd64", ErrNotLocked},
		{"a", "linux", ErrPlatform},
		{"a", Any, ErrPlatform},
		{"b", "linux/amd64", ErrPlatform},
	} {
		if _, err := f.WithPlatform(c.id, c.key, entry("x")); !errors.Is(err, c.err) {
			t.Errorf("%s %s: %v", c.id, c.key, err)
		}
	}
	if _, err := f.WithPlatform("b", Any, entry("x")); err != nil {
		t.Error(err)
	}
}

func TestFor(t *testing.T) {
	for _, c := range []struct {
		p        Plugin
		platform string
		key      string
		ok       bool
	}{
		{plugin("a", "1", "linux/amd64", "linux/arm64"), "linux/arm64", "linux/arm64", true},
		{plugin("a", "1", "linux/amd64"), "linux/arm64", "", false},
		{plugin("a", "1", Any), "linux/arm64", Any, true},
	} {
		e, key, ok := c.p.For(c.platform)
		if key != c.key || ok != c.ok || ok && !samePlatform(e, c.p.Platforms[key]) {
			t.Errorf("%v for %s: %q, %v", c.p.keys(), c.platform, key, ok)
		}
	}
}

// TestKnowsGosPlatforms asks the toolchain for its list.
func TestKnowsGosPlatforms(t *testing.T) {
	out, err := exec.Command("go", "tool", "dist", "list").Output()
	if err != nil {
		t.Skipf("go tool dist list: %v", err)
	}
	n := 0
	for key := range strings.FieldsSeq(string(out)) {
		n++
		if err := CheckPlatform(key); err != nil {
			t.Error(err)
		}
	}
	if n < 30 {
		t.Errorf("only %d platforms", n)
	}
}

func TestDiffNamesEveryKind(t *testing.T) {
	base := (&File{}).With(plugin("gone", "1", Any)).With(plugin("a", "1", "linux/amd64", "linux/386")).WithFloor("i", 2)
	p, _ := base.Plugin("a")
	p = p.canonical()
	p.Version, p.Source, p.Grants, p.Signer = "2", "", []string{}, &Signer{Key: "k"}
	e := entry("other")
	e.Evidence = []string{"sbom"}
	p.Platforms = map[string]Platform{"linux/amd64": e, "darwin/arm64": entry("d")}
	now := base.Without("gone").With(p).With(plugin("new", "3", Any)).WithFloor("i", 5)

	old := entry("a1linux/amd64")
	want := []string{
		"a: version 2, was 1",
		"a: source none, was dist/a.zip",
		"a: grants none, was project.metadata.read",
		`a: signer key "k", was none`,
		"a: platform darwin/arm64 added",
		"a: platform linux/386 missing",
		fmt.Sprintf("a: linux/amd64 archive %s, was %s", e.Archive, old.Archive),
		fmt.Sprintf("a: linux/amd64 package %s, was %s", e.Package, old.Package),
		fmt.Sprintf("a: linux/amd64 manifest %s, was %s", e.Manifest, old.Manifest),
		fmt.Sprintf("a: linux/amd64 fingerprint %s, was %s", e.Fingerprint, old.Fingerprint),
		"a: linux/amd64 evidence sbom, was none",
		"gone: removed, was version 1",
		"new: added at version 3",
		"i: lowest revocation list 5, was 2",
	}
	var got []string
	kinds := map[Kind]bool{}
	for _, c := range Diff(base, now) {
		got = append(got, c.String())
		kinds[c.Kind] = true
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(kinds) != 14 {
		t.Errorf("%d kinds of 14: %v", len(kinds), kinds)
	}
}

func TestCheckSource(t *testing.T) {
	for _, s := range []string{
		"", ".", "dist/x.zip", "../shared/x.zip", "dist/{version}/x-{os}-{arch}.zip", "a b/größe.zip",
		"https://plugins.example:8443/x.zip?channel=stable", "oci://registry.example/team/x:{version}",
	} {
		if err := CheckSource(s); err != nil {
			t.Errorf("%q %v", s, err)
		}
	}
	for _, s := range []string{
		"/x", `a\b`, "c:x", "C:/x", "//host/x", "~/x", "~user/x", "a{x}", "{version", "version}", "{Version}", "{}",
		"https://u:p@h/x", "https://u@h/x", "https://h/x?access_token=1", "https://h/x?a=1&SIG=2", "https://h/x#f",
		"http://h/x", "HTTP://h/x", "ftp://h/x", "file:///x", "https:///x", "https://", "://x", "https://h/%zz", "https://h/x?%zz",
		"\xff", strings.Repeat("x", MaxSource+1),
	} {
		if err := CheckSource(s); err == nil {
			t.Errorf("%q is accepted", s)
		}
	}
}

func TestWriteAndRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	if _, _, err := Read(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing lock: %v", err)
	}
	f := (&File{}).With(plugin("a", "1", Any))
	if err := Write(path, f); err != nil {
		t.Fatal(err)
	}
	got, raw, err := Read(path)
	if err != nil || !Equal(got, f) || string(raw) != string(f.Format()) {
		t.Fatalf("%v %v", got, err)
	}

	var fault *SyntaxError
	bad := f.With(Plugin{ID: "b", Version: "1\x00"})
	if err := Write(path, bad); !errors.As(err, &fault) || fault.Line == 0 {
		t.Errorf("an invalid lock is written: %v", err)
	}
	if _, after, err := Read(path); err != nil || string(after) != string(raw) {
		t.Errorf("a refused write changed the file: %v", err)
	}
	if names := directory(t, filepath.Dir(path)); !slices.Equal(names, []string{FileName}) {
		t.Errorf("left behind: %v", names)
	}
	if err := os.WriteFile(path, []byte("lockVersion = 9\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Read(path); !errors.Is(err, ErrVersion) || !errors.As(err, &fault) || fault.File != path {
		t.Errorf("got %v", err)
	}
}

func TestEditWritesOnlyChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	same := func(f *File) (*File, error) { return f, nil }
	if _, err := Edit(path, same); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an edit without change made a file: %v", err)
	}
	f, err := Edit(path, func(f *File) (*File, error) { return f.With(plugin("a", "1", Any)), nil })
	if err != nil || len(f.Plugins) != 1 {
		t.Fatal(f, err)
	}
	byHand := append([]byte("# a note\r\n"), f.Format()...)
	if err := os.WriteFile(path, byHand, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, edit := range []func(*File) (*File, error){same, func(f *File) (*File, error) { return f.With(plugin("a", "1", Any)), nil }} {
		if _, err := Edit(path, edit); err != nil {
			t.Fatal(err)
		}
		if _, raw, err := Read(path); err != nil || string(raw) != string(byHand) {
			t.Errorf("an edit that changes nothing rewrote the file as %q, %v", raw, err)
		}
	}
	stop := errors.New("stop")
	if _, err := Edit(path, func(*File) (*File, error) { return nil, stop }); err != stop {
		t.Errorf("got %v", err)
	}
}

func TestConcurrentEditsLoseNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			_, err := Edit(path, func(f *File) (*File, error) { return f.With(plugin(fmt.Sprintf("p%d", i), "1", Any)), nil })
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	f, _, err := Read(path)
	if err != nil || len(f.Plugins) != 20 {
		t.Fatalf("%d of 20 plugins, %v", len(f.Plugins), err)
	}
}

func TestLinkedLockIsNeitherReadNorReplaced(t *testing.T) {
	dir := t.TempDir()
	target, path := filepath.Join(dir, "target"), filepath.Join(dir, FileName)
	if err := Write(target, &File{}); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Skip(err)
	}
	if _, _, err := Read(path); !errors.Is(err, textfile.ErrSymlink) {
		t.Errorf("read: %v", err)
	}
	if err := Write(path, (&File{}).WithFloor("i", 1)); !errors.Is(err, textfile.ErrSymlink) {
		t.Errorf("write: %v", err)
	}
	if f, _, err := Read(target); err != nil || !Equal(f, nil) {
		t.Errorf("the target changed: %v", err)
	}
}

func directory(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// A first entry with its name misspelt is told at its own place.
func TestMisspeltFirstEntry(t *testing.T) {
	valid := string(read(t, filepath.Join(fixtures, "valid", "one.lock")))
	at := strings.Index(valid, "[[plugin]]")
	entry := valid[at:]
	text := valid[:at] + strings.Replace(entry, "[[plugin]]", "[[Plugin]]", 1) + "\n" + entry
	_, err := Parse("switchyard.lock", []byte(text))
	var e *SyntaxError
	if !errors.As(err, &e) || e.Line != strings.Count(valid[:at], "\n")+1 || e.Column != 3 || !strings.Contains(e.Message, `unknown member "Plugin"`) {
		t.Errorf("%v", err)
	}
}
