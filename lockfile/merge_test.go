package lockfile

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestMerge(t *testing.T) {
	lock := func(plugins ...Plugin) *File {
		f := &File{}
		for _, p := range plugins {
			f = f.With(p)
		}
		return f
	}
	with := func(p Plugin, change func(*Plugin)) Plugin {
		p = p.canonical()
		change(&p)
		return p
	}
	a := plugin("a", "1", "linux/amd64")
	linux, darwin := "linux/amd64", "darwin/arm64"
	rebuilt := with(a, func(p *Plugin) { p.Platforms[linux] = entry("rebuilt") })
	more := with(a, func(p *Plugin) { p.Grants = append(p.Grants, "project.operate") })
	both := plugin("a", "1", linux, darwin)
	windows := plugin("a", "1", linux, "windows/amd64")

	for _, c := range []struct {
		name               string
		base, ours, theirs *File
		want               *File
		conflicts          string
	}{
		{"other ids", lock(a), lock(a, plugin("b", "1", Any)), lock(a, plugin("c", "1", Any)),
			lock(a, plugin("b", "1", Any), plugin("c", "1", Any)), ""},
		{"other platforms of the same version", lock(a), lock(both), lock(windows),
			lock(plugin("a", "1", linux, darwin, "windows/amd64")), ""},
		{"one side upgrades", lock(a), lock(plugin("a", "2", linux)), lock(a), lock(plugin("a", "2", linux)), ""},
		{"both remove", lock(a), lock(), lock(), lock(), ""},
		{"one removes", lock(a), lock(), lock(a), lock(), ""},
		{"one side removes a platform, the other adds one", lock(both), lock(a),
			lock(plugin("a", "1", linux, darwin, "windows/amd64")), lock(windows), ""},
		{"both upgrade, with different platforms", lock(both), lock(plugin("a", "2", linux)), lock(plugin("a", "2", linux, darwin)),
			lock(plugin("a", "2", linux, darwin)), ""},
		{"the same new plugin on two platforms, no base", nil, lock(a), lock(plugin("a", "1", darwin)), lock(both), ""},

		{"digests of one platform", lock(a), lock(rebuilt), lock(with(a, func(p *Plugin) { p.Platforms[linux] = entry("third") })), nil,
			"a: linux/amd64 archive"},
		{"a digest beside an added platform", lock(a), lock(rebuilt), lock(both), nil, "a: linux/amd64 package"},
		{"digests, no base", nil, lock(a), lock(rebuilt), nil, "a: linux/amd64 fingerprint"},
		{"versions", lock(a), lock(plugin("a", "2", linux)), lock(plugin("a", "3", linux)), nil, "a: version 3, was 2"},
		{"an upgrade beside grants", lock(a), lock(plugin("a", "2", linux)), lock(more), nil, "a: grants project.metadata.read, project.operate"},
		{"grants", lock(a), lock(more), lock(with(a, func(p *Plugin) { p.Grants = nil })), nil, "a: grants none"},
		{"grants beside a platform", lock(a), lock(more), lock(both), nil, "a: grants"},
		{"sources", lock(a), lock(with(a, func(p *Plugin) { p.Source = "x" })), lock(with(a, func(p *Plugin) { p.Source = "y" })), nil, "a: source y, was x"},
		{"signers", lock(a), lock(with(a, func(p *Plugin) { p.Signer = &Signer{Key: "1"} })), lock(both), nil, "a: signer none"},
		{"removed and changed", lock(a), lock(), lock(rebuilt), nil, "a: added at version 1"},
		{"changed and removed", lock(a), lock(rebuilt), lock(), nil, "a: removed, was version 1"},
		{"platform removed and changed", lock(both), lock(a),
			lock(with(both, func(p *Plugin) { p.Platforms[darwin] = entry("rebuilt") })), nil, "a: platform darwin/arm64 added"},
		{"any beside a platform", nil, lock(plugin("a", "1", Any)), lock(a), nil, "a: platform any missing"},
		{"nothing left", lock(both), lock(a), lock(plugin("a", "1", darwin)), nil, "a: platform linux/amd64 missing"},
	} {
		got, conflicts := Merge(c.base, c.ours, c.theirs)
		var said []string
		for _, conflict := range conflicts {
			said = append(said, conflict.String())
		}
		if all := strings.Join(said, "\n"); !strings.Contains(all, c.conflicts) || (c.conflicts == "") != (all == "") {
			t.Errorf("%s: conflicts %q, want %q", c.name, said, c.conflicts)
		}
		if (got == nil) != (c.want == nil) || got != nil && !Equal(got, c.want) {
			t.Errorf("%s: got %v", c.name, Diff(c.want, got))
		}
	}
}

func TestMergeTextNamesTheBrokenSide(t *testing.T) {
	good := (&File{}).Format()
	for _, c := range []struct {
		base, ours, theirs string
		want               string
	}{
		{"", string(good), "x", "theirs:1:2: "},
		{"", "lockVersion = 2", string(good), "ours:1:15: "},
		{"lockVersion = 3", string(good), string(good), "base:1:15: "},
		{" \n", "", string(good), "ours:1:1: "},
	} {
		_, _, err := MergeText([]byte(c.base), []byte(c.ours), []byte(c.theirs))
		var fault *SyntaxError
		if !errors.As(err, &fault) || !strings.HasPrefix(fault.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	if text, conflicts, err := MergeText(nil, good, good); err != nil || conflicts != nil || string(text) != string(good) {
		t.Errorf("%q %v %v", text, conflicts, err)
	}
}

func TestSplitConflict(t *testing.T) {
	s, err := SplitConflict("x", []byte("a\n<<<<<<< HEAD\nb\n||||||| 1234567\nc\n=======\nd\ne\n>>>>>>> topic\n=======\nf"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ got, want string }{
		{string(s.Ours), "a\n\nb\n\n\n\n\n\n\n=======\nf"},
		{string(s.Base), "a\n\n\n\nc\n\n\n\n\n=======\nf"},
		{string(s.Theirs), "a\n\n\n\n\n\nd\ne\n\n=======\nf"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
	s, err = SplitConflict("x", []byte("<<<<<<< o\n||||||| b\n=======\n>>>>>>> t\n<<<<<<< o\n=======\n>>>>>>> t\n"))
	if err != nil || s.Base != nil {
		t.Errorf("a block without base: %q, %v", s.Base, err)
	}
	for text, want := range map[string]string{
		"":                          "x:1:1: the file holds no conflict",
		"a\n=======\n":              "x:1:1: the file holds no conflict",
		"a\n<<<<<<< o\n":            "x:2:1: the conflict that starts here does not end",
		"<<<<<<< o\n=======\n":      "x:1:1: the conflict that starts here does not end",
		"<<<<<<< o\n<<<<<<< o\n":    "x:2:1: the conflict marker <<<<<<< is out of order",
		"<<<<<<< o\n>>>>>>> t\n":    "x:2:1: the conflict marker >>>>>>> is out of order",
		"||||||| b\n":               "x:1:1: the conflict marker ||||||| is out of order",
		">>>>>>> t\n":               "x:1:1: the conflict marker >>>>>>> is out of order",
		"<<<<<<<\n=======\n=======": "x:3:1: the conflict marker ======= is out of order",
	} {
		if _, err := SplitConflict("x", []byte(text)); !errors.Is(err, ErrConflict) || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// TestGitsOwnMarkers lets git merge texts and takes apart what it leaves.
func TestGitsOwnMarkers(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	base := (&File{}).With(plugin("a", "1", "linux/amd64")).With(plugin("m", "1", Any))
	upgraded := base.With(plugin("a", "2", "linux/amd64"))
	more := plugin("a", "1", "linux/amd64")
	more.Grants = append(more.Grants, "project.operate")
	granted := base.With(more)
	for _, c := range []struct {
		name         string
		ours, theirs *File
		conflicts    string // "" for a clean merge
		want         *File
	}{
		{"two added plugins", base.With(plugin("b", "1", Any)), base.With(plugin("c", "1", Any)), "",
			base.With(plugin("b", "1", Any)).With(plugin("c", "1", Any))},
		{"two versions", upgraded, base.With(plugin("a", "3", "linux/amd64")), "a: version 3, was 2", nil},
		{"two platforms", base.With(plugin("a", "1", "linux/amd64", "linux/arm")), base.With(plugin("a", "1", "linux/amd64", "linux/arm64")), "",
			base.With(plugin("a", "1", "linux/amd64", "linux/arm", "linux/arm64"))},
		{"a version and grants", upgraded, granted, "a: grants", nil},
	} {
		for _, style := range []string{"", "--diff3", "--zdiff3"} {
			t.Run(c.name+style, func(t *testing.T) {
				dir := t.TempDir()
				args := []string{"merge-file", "-p", "-L", "ours", "-L", "base", "-L", "theirs"}
				if style != "" {
					args = append(args, style)
				}
				for _, side := range []struct {
					name string
					f    *File
				}{{"ours", c.ours}, {"base", base}, {"theirs", c.theirs}} {
					if err := os.WriteFile(filepath.Join(dir, side.name), side.f.Format(), 0o644); err != nil {
						t.Fatal(err)
					}
					args = append(args, side.name)
				}
				cmd := exec.Command(git, args...)
				cmd.Dir = dir
				marked, err := cmd.Output()
				if len(marked) == 0 {
					t.Skipf("git merge-file %s: %v", style, err)
				}
				if err == nil {
					t.Fatalf("git sees no conflict in\n%s", marked)
				}
				if _, err := Parse("x", marked); !errors.Is(err, ErrConflict) {
					t.Errorf("read as a lock: %v", err)
				}
				text, conflicts, err := MergeConflicted("x", marked)
				if err != nil {
					t.Fatalf("%v in\n%s", err, marked)
				}
				if !strings.Contains(fmt.Sprint(conflicts), c.conflicts) || (c.conflicts == "") != (len(conflicts) == 0) {
					t.Fatalf("conflicts %v", conflicts)
				}
				if c.want != nil && string(text) != string(c.want.Format()) {
					t.Errorf("merged to\n%s", text)
				}
			})
		}
	}
}

func TestMergeConflictedKeepsLineNumbers(t *testing.T) {
	text := "lockVersion = 1\n<<<<<<< ours\n||||||| base\n=======\nx = 1\n>>>>>>> theirs\n"
	_, _, err := MergeConflicted("lock", []byte(text))
	var fault *SyntaxError
	if !errors.As(err, &fault) || fault.Line != 5 || fault.File != "lock" {
		t.Errorf("got %v", err)
	}
}
