package process

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestEnvironmentIsExact gives the builder a host environment full of canaries
// and compares the whole result.
func TestEnvironmentIsExact(t *testing.T) {
	t.Parallel()
	host := map[string]string{
		"PATH": "/usr/bin", "TMPDIR": "/var/tmp", "LANG": "en_US.UTF-8", "HOME": "/home/canary", "USER": "canary",
		"AWS_SECRET_ACCESS_KEY": "canary", "GITHUB_TOKEN": "canary", "LC_ALL": "canary", "LD_PRELOAD": "canary",
		"SSH_AUTH_SOCK": "canary", "GOFLAGS": "canary", "PYTHONPATH": "canary", "SWITCHYARD_DATA_DIR": "canary",
		MarkVariable: "canary", ProtocolVariable: "canary", "SYSTEMROOT": `C:\Windows`,
	}
	lookup := func(name string) (string, bool) { v, ok := host[name]; return v, ok }
	got := Environment(lookup, "switchyard.plugin/v1", t.TempDir())
	want := []string{ProtocolVariable + "=switchyard.plugin/v1", "PATH=/usr/bin", "TMPDIR=/var/tmp", "LANG=en_US.UTF-8"}
	if filepath.Separator == '\\' {
		t.Skip("other rules for paths")
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	// What the host does not have is not invented; what is set but empty is set.
	host = map[string]string{"LANG": ""}
	if got := Environment(lookup, "p"); !slices.Equal(got, []string{ProtocolVariable + "=p", "LANG="}) {
		t.Errorf("got %q", got)
	}
	host = map[string]string{"PATH": "bin:.:"}
	if got := Environment(lookup, "p"); !slices.Equal(got, []string{ProtocolVariable + "=p"}) {
		t.Errorf("got %q", got)
	}
}

func TestSafePath(t *testing.T) {
	t.Parallel()
	if filepath.Separator == '\\' {
		t.Skip("modes mean nothing here")
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := func(mode os.FileMode, parts ...string) string {
		t.Helper()
		path := filepath.Join(append([]string{base}, parts...)...)
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	link := func(target, name string) string {
		t.Helper()
		path := filepath.Join(base, name)
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := dir(0o755, "good")
	project := dir(0o755, "project")
	pack := dir(0o755, "package")
	inProject := dir(0o755, "project", "node_modules", ".bin")
	besideProject := dir(0o755, "project-tools")
	world := dir(0o777, "world")
	inWorld := dir(0o755, "world", "bin")
	sticky := dir(0o777|os.ModeSticky, "sticky")
	inSticky := dir(0o755, "sticky", "bin")
	group := dir(0o775, "group")
	for _, c := range []struct {
		name, entry string
		kept        bool
	}{
		{"ordinary", good, true},
		{"ordinary, unclean", good + "//./", true},
		{"missing", filepath.Join(good, "missing", "bin"), true},
		{"missing below nothing", "/nonexistent/bin", true},
		{"beside the project", besideProject, true},
		{"group-writable", group, true},
		{"link to an ordinary one", link(good, "to-good"), true},
		{"inside a sticky directory, by its owner", inSticky, true},
		{"empty", "", false},
		{"dot", ".", false},
		{"relative", "bin", false},
		{"project", project, false},
		{"in the project", inProject, false},
		{"in the project, missing", filepath.Join(project, "missing"), false},
		{"in the project, disguised", filepath.Join(good, "..", "project"), false},
		{"in the package", filepath.Join(pack, "bin"), false},
		{"link into the project", link(inProject, "to-project"), false},
		{"other-writable", world, false},
		{"below other-writable", inWorld, false},
		{"sticky", sticky, false},
		{"missing in a sticky directory", filepath.Join(sticky, "missing"), false},
		{"link to other-writable", link(world, "to-world"), false},
	} {
		want := ""
		if c.kept {
			want = c.entry
		}
		if got := safePath(c.entry, []string{link(project, "project-link-"+strings.ReplaceAll(c.name, " ", "-")), pack, ""}); got != want {
			t.Errorf("%s: %q gives %q", c.name, c.entry, got)
		}
	}
	all := strings.Join([]string{world, good, "bin", project, group}, ":")
	if got := safePath(all, []string{project}); got != good+":"+group {
		t.Errorf("order: %q", got)
	}
}
