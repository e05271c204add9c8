package project

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/lockfile/textfile"
)

// tree makes directories (names that end in "/") and empty files below a fresh,
// resolved directory.
func tree(t *testing.T, names ...string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(names, ".git/") { // no walk leaves the test
		path := filepath.Join(root, filepath.FromSlash(name))
		if name[len(name)-1] == '/' {
			err = os.MkdirAll(path, 0o755)
		} else {
			err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestFind(t *testing.T) {
	for _, c := range []struct {
		name  string
		files []string
		start string
		want  string // the root, relative; "-" for none
		new   string // where New puts a project
	}{
		{"here", []string{"a/switchyard.toml"}, "a", "a", "."},
		{"only a lock", []string{"a/switchyard.lock"}, "a", "a", "."},
		{"above", []string{"switchyard.toml", "a/b c/größe/"}, "a/b c/größe", ".", "."},
		{"the nearest", []string{"switchyard.toml", "a/switchyard.lock", "a/b/"}, "a/b", "a", "."},
		{"beside the store", []string{"a/.hg/", "a/switchyard.toml", "a/b/"}, "a/b", "a", "a"},
		{"not beyond git", []string{"switchyard.toml", "a/.git/"}, "a", "-", "a"},
		{"not beyond a worktree", []string{"switchyard.toml", "a/.git", "a/b/"}, "a/b", "-", "a"},
		{"not beyond mercurial", []string{"switchyard.toml", "a/.hg/", "a/b/"}, "a/b", "-", "a"},
		{"not beyond subversion", []string{"switchyard.toml", "a/.svn/", "a/b/"}, "a/b", "-", "a"},
		{"not beyond jujutsu", []string{"switchyard.toml", "a/.jj/", "a/b/"}, "a/b", "-", "a"},
		{"other names", []string{"Switchyard.toml", "switchyard.toml.orig", "a/"}, "a", "-", "."},
	} {
		root := tree(t, c.files...)
		start := filepath.Join(root, filepath.FromSlash(c.start))
		p, err := Find(start)
		if c.want == "-" {
			if !errors.Is(err, ErrNone) {
				t.Errorf("%s: %+v, %v", c.name, p, err)
			}
		} else if err != nil || p.Root != filepath.Join(root, c.want) {
			t.Errorf("%s: %+v, %v", c.name, p, err)
		} else {
			_, errConfig := os.Stat(p.ConfigPath())
			_, errLock := os.Stat(p.LockPath())
			if p.HasConfig != (errConfig == nil) || p.HasLock != (errLock == nil) {
				t.Errorf("%s: %+v", c.name, p)
			}
		}
		if p, err := New(start); err != nil || p.Root != filepath.Join(root, c.new) || p.HasConfig || p.HasLock {
			t.Errorf("%s: a new project goes to %+v, %v", c.name, p, err)
		}
	}
}

func TestFindRefuses(t *testing.T) {
	root := tree(t, "a/b/", "target", "dir/switchyard.lock/", "dir/below/")
	link := filepath.Join(root, "a", ConfigName)
	if err := os.Symlink(filepath.Join(root, "target"), link); err != nil {
		t.Skip(err)
	}
	for start, want := range map[string]error{
		"a/b":       textfile.ErrSymlink,
		"dir/below": textfile.ErrNotRegular,
		"missing":   fs.ErrNotExist,
	} {
		if _, err := Find(filepath.Join(root, start)); !errors.Is(err, want) {
			t.Errorf("%s: %v", start, err)
		}
	}
	if p, err := Find(filepath.Join(root, "target")); err == nil {
		t.Errorf("started at a file, found %+v", p)
	}
}

func TestFindResolvesTheStart(t *testing.T) {
	root := tree(t, "real/switchyard.toml", "real/sub/", "other/switchyard.toml")
	link := filepath.Join(root, "other", "link")
	if err := os.Symlink(filepath.Join(root, "real", "sub"), link); err != nil {
		t.Skip(err)
	}
	if p, err := Find(link); err != nil || p.Root != filepath.Join(root, "real") {
		t.Errorf("%+v, %v", p, err)
	}
	t.Chdir(filepath.Join(root, "real", "sub"))
	if p, err := Find("."); err != nil || p.Root != filepath.Join(root, "real") {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestReadAndEditConfig(t *testing.T) {
	root := tree(t, "a/")
	p, err := New(filepath.Join(root, "a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.ReadConfig(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			err := p.EditConfig(func(text []byte) ([]byte, error) {
				return AddPlugin(p.ConfigPath(), text, fmt.Sprintf("p%d", i), facts)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	c, text, err := p.ReadConfig()
	if err != nil || len(c.Plugins) != 10 || len(c.IDs()) != 10 || c.IDs()[0] != "p0" {
		t.Fatalf("%v %v", c, err)
	}
	var fault *lockfile.SyntaxError
	if err := p.EditConfig(func([]byte) ([]byte, error) { return []byte("x"), nil }); !errors.As(err, &fault) {
		t.Errorf("an invalid file is written: %v", err)
	}
	if _, after, err := p.ReadConfig(); err != nil || string(after) != string(text) {
		t.Errorf("a refused edit changed the file: %v", err)
	}
	if found, err := Find(filepath.Join(root, "a")); err != nil || found.Root != p.Root || !found.HasConfig {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestRelativeSource(t *testing.T) {
	root := tree(t, "p/switchyard.toml", "p/dist/", "shared/")
	if err := os.Symlink(filepath.Join(root, "shared"), filepath.Join(root, "p", "link")); err != nil {
		t.Skip(err)
	}
	p, err := Find(filepath.Join(root, "p"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Join(root, "p", "dist"))
	for path, want := range map[string]string{
		"a.zip":                             "dist/a.zip",
		"./../b c.zip":                      "b c.zip",
		filepath.Join(root, "shared", "x"):  "../shared/x",
		filepath.Join(p.Root, "link", "x"):  "../shared/x",
		p.Root:                              ".",
		filepath.Join(p.Root, "none", "y"):  "none/y",
		filepath.Join(p.Root, "dist", "~a"): "dist/~a",
	} {
		got, err := p.RelativeSource(path)
		if err != nil || got != want {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	for _, path := range []string{"../a:b", `../a\b`, "../{x}"} {
		if got, err := p.RelativeSource(path); err == nil {
			t.Errorf("%s: %q", path, got)
		}
	}
	if got := p.SourcePath("../shared/x"); got != filepath.Join(root, "shared", "x") {
		t.Errorf("got %s", got)
	}
}
