//go:build unix

package pkgmgr

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/lockfile/tomlstrict"
	"github.com/switchyard-plugins/switchyard/verify"
	"github.com/switchyard-plugins/switchyard/verify/policy"
)

// TestConfigDir holds where the configuration directory is, and that nothing is made.
func TestConfigDir(t *testing.T) {
	env := func(pairs ...string) func(string) string {
		return func(name string) string {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1]
				}
			}
			return ""
		}
	}
	chosen := filepath.Join(t.TempDir(), "chosen")
	if dir, err := ConfigDir(env(EnvConfigDir, chosen, "HOME", "/nowhere")); err != nil || dir != chosen {
		t.Errorf("%q, %v", dir, err)
	}
	if _, err := os.Lstat(chosen); !os.IsNotExist(err) {
		t.Errorf("it was made: %v", err)
	}
	t.Chdir(t.TempDir())
	if dir, err := ConfigDir(env(EnvConfigDir, "rel")); err != nil || !filepath.IsAbs(dir) || filepath.Base(dir) != "rel" {
		t.Errorf("%q, %v", dir, err)
	}
}

// newConfig makes a configuration directory of these files.
func newConfig(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(dir, name), text, 0o644)
	}
	return dir
}

// TestReadAssurance holds what is read, and that what is not there is the default.
func TestReadAssurance(t *testing.T) {
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "gone")} {
		a, err := ReadAssurance(dir)
		must(t, err)
		if a.Policy.Signature != policy.Allowed || len(a.Policy.Publishers) > 0 || a.Keys != nil || a.TrustedRoot != nil {
			t.Errorf("nothing there: %+v", a)
		}
	}
	dir := newConfig(t, map[string]string{
		"policy.toml": "version = 1\nsignature = \"required\"\n", "trusted_root.json": "{}",
		"keys/b.pub": "B", "keys/a.pub": "A", "keys/c.key": "C", "keys/README": "D", "other": "E",
	})
	a, err := ReadAssurance(dir)
	must(t, err)
	if a.Policy.Signature != policy.Required || string(a.TrustedRoot) != "{}" || !slices.Equal(a.Keys, []string{"A", "B"}) {
		t.Errorf("read: %+v", a)
	}
}

// TestReadAssuranceRefuses holds that nothing of a directory counts if a part of it is
// wrong: a missing rule would be a weaker one.
func TestReadAssuranceRefuses(t *testing.T) {
	files := map[string]string{"policy.toml": "version = 1\n", "trusted_root.json": "{}", "keys/a.pub": "A"}
	for name := range files {
		at := func(dir string) string { return filepath.Join(dir, name) }
		refuses := func(t *testing.T, dir string) {
			t.Helper()
			a, err := ReadAssurance(dir)
			var exposed *Exposed
			if !errors.As(err, &exposed) || exposed.Path != at(dir) || a != nil {
				t.Errorf("got %+v, %v", a, err)
			}
		}
		for _, mode := range []os.FileMode{0o664, 0o646, 0o666} {
			t.Run(fmt.Sprintf("%s with mode %o", name, mode), func(t *testing.T) {
				dir := newConfig(t, files)
				must(t, os.Chmod(at(dir), mode))
				refuses(t, dir)
			})
		}
		t.Run(name+" of another user", func(t *testing.T) {
			if os.Geteuid() != 0 {
				t.Skip("only root can give a file away")
			}
			dir := newConfig(t, files)
			must(t, os.Chown(at(dir), 65534, 65534))
			refuses(t, dir)
		})
		t.Run(name+" as a directory", func(t *testing.T) {
			dir := newConfig(t, files)
			must(t, os.Remove(at(dir)))
			must(t, os.Mkdir(at(dir), 0o755))
			refuses(t, dir)
		})
		t.Run(name+" as a link that leads nowhere", func(t *testing.T) {
			dir := newConfig(t, files)
			must(t, os.Remove(at(dir)))
			must(t, os.Symlink("gone", at(dir)))
			if a, err := ReadAssurance(dir); err == nil {
				t.Errorf("it counts as missing: %+v", a)
			}
		})
		t.Run(name+" as a link to somebody else's", func(t *testing.T) {
			dir, other := newConfig(t, files), newConfig(t, files)
			must(t, os.Chmod(at(other), 0o666))
			must(t, os.Remove(at(dir)))
			must(t, os.Symlink(at(other), at(dir)))
			refuses(t, dir)
		})
		t.Run(name+" as a link through a directory that others can write", func(t *testing.T) {
			dir, other := newConfig(t, files), newConfig(t, files)
			must(t, os.Chmod(filepath.Dir(at(other)), 0o777))
			must(t, os.Remove(at(dir)))
			must(t, os.Symlink(at(other), at(dir)))
			var exposed *Exposed
			if a, err := ReadAssurance(dir); name != "keys/a.pub" && !errors.As(err, &exposed) {
				t.Errorf("got %+v, %v", a, err)
			}
		})
		t.Run(name+" too large", func(t *testing.T) {
			dir := newConfig(t, files)
			write(t, at(dir), strings.Repeat("#", verify.MaxTrustedRoot+1), 0o644)
			if a, err := ReadAssurance(dir); err == nil || a != nil {
				t.Errorf("got %+v, %v", a, err)
			}
		})
	}
	t.Run("a policy that is wrong", func(t *testing.T) {
		dir := newConfig(t, map[string]string{"policy.toml": "version = 1\nSignature = \"required\"\n"})
		a, err := ReadAssurance(dir)
		var faults tomlstrict.Faults
		if !errors.As(err, &faults) || a != nil {
			t.Errorf("got %+v, %v", a, err)
		}
	})
	t.Run("too many keys", func(t *testing.T) {
		dir := newConfig(t, nil)
		for i := range maxKeys {
			write(t, filepath.Join(dir, keysDir, fmt.Sprintf("%d.pub", i)), "K", 0o644)
		}
		if a, err := ReadAssurance(dir); err != nil || len(a.Keys) != maxKeys {
			t.Fatalf("%d keys: %v", maxKeys, err)
		}
		write(t, filepath.Join(dir, keysDir, "more.pub"), "K", 0o644)
		if a, err := ReadAssurance(dir); err == nil || a != nil {
			t.Errorf("got %+v, %v", a, err)
		}
	})
	t.Run("keys in a directory that others can write", func(t *testing.T) {
		for _, name := range []string{"", keysDir} {
			dir := newConfig(t, files)
			must(t, os.Chmod(filepath.Join(dir, name), 0o777))
			var exposed *Exposed
			if a, err := ReadAssurance(dir); !errors.As(err, &exposed) || a != nil {
				t.Errorf("%q: got %+v, %v", name, a, err)
			}
		}
	})
}
