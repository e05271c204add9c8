package textfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestReadRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("12345"), 0o644); err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int64]error{6: nil, 5: nil, 4: ErrTooLarge, 0: ErrTooLarge} {
		data, err := Read(file, limit)
		if !errors.Is(err, want) || err == nil && string(data) != "12345" {
			t.Errorf("limit %d: %q, %v", limit, data, err)
		}
	}
	if _, err := Read(dir, 10); !errors.Is(err, ErrNotRegular) {
		t.Errorf("a directory: %v", err)
	}
	if _, err := Read(filepath.Join(dir, "none"), 10); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if err := Check(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	for name, target := range map[string]string{"link": file, "dangling": filepath.Join(dir, "none")} {
		link := filepath.Join(dir, name)
		if err := os.Symlink(target, link); err != nil {
			t.Skip(err)
		}
		if _, err := Read(link, 10); !errors.Is(err, ErrSymlink) {
			t.Errorf("%s: %v", name, err)
		}
		if err := Write(link, nil); !errors.Is(err, ErrSymlink) {
			t.Errorf("writing %s: %v", name, err)
		}
		if err := Check(link); !errors.Is(err, ErrSymlink) {
			t.Errorf("checking %s: %v", name, err)
		}
	}
	if err := Write(dir, nil); !errors.Is(err, ErrNotRegular) {
		t.Errorf("writing a directory: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a write followed a link")
	}
}

func TestWriteLeavesOneFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "größe und leer")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "file")
	for _, text := range []string{"first", "", strings.Repeat("x", 1<<20)} {
		if err := Write(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := Read(path, 1<<20); err != nil || string(got) != text {
			t.Errorf("read %d bytes, %v", len(got), err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
	if err := Write(filepath.Join(dir, "none", "file"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("into a missing directory: %v", err)
	}
}

func TestEdit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	fail := errors.New("fail")
	steps := []struct {
		wantText   string
		wantExists bool
		give       []byte
		err        error
	}{
		{"", false, nil, nil},
		{"", false, []byte("a"), fail},
		{"", false, []byte(""), nil},
		{"", true, []byte("a"), nil},
		{"a", true, nil, nil},
		{"a", true, []byte("a"), nil},
		{"a", true, []byte("b"), fail},
		{"a", true, nil, nil},
	}
	for i, s := range steps {
		err := Edit(path, 10, func(text []byte, exists bool) ([]byte, error) {
			if string(text) != s.wantText || exists != s.wantExists {
				t.Errorf("step %d: got %q, %v", i, text, exists)
			}
			return s.give, s.err
		})
		if err != s.err {
			t.Errorf("step %d: %v", i, err)
		}
	}
	if err := Edit(filepath.Join(filepath.Dir(path), "none", "file"), 10, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a missing directory: %v", err)
	}
}

func TestEditsAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			err := Edit(path, 1<<10, func(text []byte, _ bool) ([]byte, error) { return fmt.Appendf(text, "%d\n", i), nil })
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	text, err := Read(path, 1<<10)
	if n := strings.Count(string(text), "\n"); err != nil || n != 50 {
		t.Errorf("%d of 50 lines, %v", n, err)
	}
}
