package archive

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSourceRefusals holds that Pack and CopyDir refuse what Extract would.
func TestSourceRefusals(t *testing.T) {
	long := strings.Repeat("p", small.PathBytes+1)
	link := func(t *testing.T, dir string) {
		if err := os.Symlink("plugin.json", filepath.Join(dir, "b")); err != nil {
			t.Fatal(err)
		}
	}
	files := func(pairs ...string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { write(t, dir, pairs...) }
	}
	chmod := func(m fs.FileMode) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			write(t, dir, "b", "x")
			if err := os.Chmod(filepath.Join(dir, "b"), m); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name  string
		make  func(*testing.T, string)
		rule  Rule
		entry string
	}{
		{"symbolic link", link, RuleLink, "b"},
		{"link to a directory", func(t *testing.T, dir string) {
			if err := os.Symlink(t.TempDir(), filepath.Join(dir, "b")); err != nil {
				t.Fatal(err)
			}
		}, RuleLink, "b"},
		{"socket", func(t *testing.T, dir string) {
			t.Chdir(dir) // a socket's path is short
			l, err := net.Listen("unix", "b")
			if err != nil {
				t.Skip(err)
			}
			t.Cleanup(func() { l.Close() })
		}, RuleSpecial, "b"},
		{"set-user-id", chmod(0o755 | fs.ModeSetuid), RuleMode, "b"},
		{"set-group-id", chmod(0o755 | fs.ModeSetgid), RuleMode, "b"},
		{"sticky", chmod(0o755 | fs.ModeSticky), RuleMode, "b"},
		{"case", files("README", "x", "readme", "x"), RuleCollision, "readme"},
		{"case of directories", files("Lib/a", "x", "lib/b", "x"), RuleCollision, "lib"},
		{"Unicode forms", files("e\u0301", "x", "\u00e9", "x"), RuleCollision, "\u00e9"},
		{"reserved name", files("aux.c", "x"), RuleReserved, "aux.c"},
		{"backslash", files(`a\b`, "x"), RuleBackslash, `a\b`},
		{"control", files("a\nb", "x"), RuleControl, "a\nb"},
		{"encoding", files("a\xff", "x"), RuleEncoding, "a\xff"},
		{"invisible", files("d/a\u200b", "x"), RuleInvisible, "d/a\u200b"},
		{"path length", files(long, "x"), RulePathLength, long},
		{"depth", files("a/b/c/d/e", "x"), RuleDepth, "a/b/c/d/e"},
		{"entries", files("1", "", "2", "", "3", "", "4", "", "5", "", "6", "", "7", "", "8", ""), RuleEntries, "plugin.json"},
		{"unpacked size", files("b", strings.Repeat("x", 64<<10)), RuleUnpackedSize, "plugin.json"},
		{"ignore file", files(IgnoreFile, "[a-"), RuleIgnoreFile, IgnoreFile},
		{"ignore file too long", files(IgnoreFile, strings.Repeat("a\n", 600)), RuleIgnoreFile, IgnoreFile},
		{"no file", files(IgnoreFile, "*"), RuleEmpty, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !unixModes {
				t.Skip("the file system has no such files")
			}
			dir := t.TempDir()
			write(t, dir, "plugin.json", manifest)
			c.make(t, dir)
			_, _, err := packPath(t, dir, TarZst, Options{Limits: small})
			wantRefusal(t, err, c.rule, c.entry)
			s := newSandbox(t)
			_, err = copyPath(t, dir, s.dst(), Options{Limits: small})
			wantRefusal(t, err, c.rule, c.entry)
			s.checkOutside()
			switch c.rule {
			case RuleLink, RuleSpecial, RuleMode, RuleReserved, RuleBackslash, RuleControl, RuleEncoding, RuleInvisible:
				_, err := hashPath(t, dir)
				wantRefusal(t, err, c.rule, c.entry)
			}
		})
	}
}

// TestPackBounds are the bounds that only a finished archive has.
func TestPackBounds(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "plugin.json", manifest, "b", strings.Repeat("\x00", 60<<10))
	for _, f := range formats {
		_, _, err := packPath(t, dir, f, Options{Limits: small})
		wantRefusal(t, err, RuleRatio, "")
		l := Default
		l.Archive = 100
		_, _, err = packPath(t, dir, f, Options{Limits: l})
		wantRefusal(t, err, RuleArchiveSize, "")
	}
}

// TestChanged is a file that changes between listing and reading.
func TestChanged(t *testing.T) {
	ctx := context.Background()
	for name, change := range map[string]func(path string) error{
		"longer":  func(p string) error { return os.WriteFile(p, []byte("more than before"), 0) },
		"shorter": func(p string) error { return os.WriteFile(p, nil, 0) },
		"mode":    func(p string) error { return os.Chmod(p, 0o755) },
		"a directory": func(p string) error {
			return errors.Join(os.Remove(p), os.Mkdir(p, 0o755))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "plugin.json", "before")
			root := openRoot(t, dir)
			l, err := list(ctx, root, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := change(filepath.Join(dir, "plugin.json")); err != nil {
				t.Fatal(err)
			}
			p, _ := newPacker(Zip, io.Discard)
			var r *Refusal
			if _, err := packFiles(ctx, root, l, p, Options{}); !errors.As(err, &r) || r.Rule != RuleChanged {
				t.Errorf("Pack: got %v", err)
			}
			s := newSink(ctx, openRoot(t, t.TempDir()))
			if err := s.close(copyFiles(s, root, l, Options{})); !errors.As(err, &r) || r.Rule != RuleChanged {
				t.Errorf("CopyDir: got %v", err)
			}
		})
	}
}

// TestIgnores asks about files that need not exist.
func TestIgnores(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, IgnoreFile, "out/\n*.zip\n")
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for path, want := range map[string]bool{"a.zip": true, "out/a": true, "x/a.zip": true, ".git/a": true, "out": false, "a": false, "x/out.b": false} {
		if got, err := Ignores(root, path, Options{}); got != want || err != nil {
			t.Errorf("%s: %v, %v", path, got, err)
		}
	}
}

// TestPackFaults are not refusals.
func TestPackFaults(t *testing.T) {
	dir := t.TempDir()
	writeSample(t, dir)
	full := errors.New("disk full")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, f := range formats {
		if _, err := Pack(context.Background(), openRoot(t, dir), failingWriter{full}, f, Options{}); !errors.Is(err, full) {
			t.Errorf("%s: got %v", f, err)
		}
		if _, err := Pack(ctx, openRoot(t, dir), io.Discard, f, Options{}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, cancelled: got %v", f, err)
		}
	}
	if _, err := Pack(context.Background(), openRoot(t, dir), io.Discard, "rar", Options{}); !errors.Is(err, ErrFormatName) {
		t.Errorf("rar: got %v", err)
	}
	if _, err := CopyDir(ctx, openRoot(t, dir), openRoot(t, t.TempDir()), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("CopyDir, cancelled: got %v", err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }
