package textfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

type fakeInfo struct {
	fs.FileInfo
	uid uint32
}

func (f fakeInfo) Sys() any { return &syscall.Stat_t{Uid: f.uid} }

func TestCheckOwner(t *testing.T) {
	self := uint32(os.Geteuid())
	for uid, want := range map[uint32]error{self: nil, 0: nil, self + 1: ErrForeign, 4_000_000_000: ErrForeign} {
		err := CheckOwner("x", fakeInfo{uid: uid})
		if !errors.Is(err, want) {
			t.Errorf("uid %d: %v", uid, err)
		}
		var owner *OwnerError
		if want != nil && (!errors.As(err, &owner) || owner.Owner != int(uid) || owner.Self != int(self) || owner.Path != "x") {
			t.Errorf("uid %d: %+v", uid, owner)
		}
	}
}

func TestFilesOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	dir := t.TempDir()
	file := func(name string, uid int) string {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, nil, 0o644), os.Chown(path, uid, -1)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	roots, somebodys, others := file("roots", 0), file("somebodys", 65534), file("others", 12345)
	if _, err := Read(somebodys, 10); !errors.Is(err, ErrForeign) {
		t.Errorf("root reads another user's file: %v", err)
	}
	if err := Write(somebodys, nil); !errors.Is(err, ErrForeign) {
		t.Errorf("root replaces another user's file: %v", err)
	}

	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Setresuid(-1, 65534, -1); err != nil {
		t.Skip(err)
	}
	defer syscall.Setresuid(-1, 0, -1)
	for path, want := range map[string]error{roots: nil, somebodys: nil, others: ErrForeign} {
		if _, err := Read(path, 10); !errors.Is(err, want) {
			t.Errorf("an ordinary user reads %s: %v", path, err)
		}
	}
	if err := Write(somebodys, nil); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("into a directory that may not be written: %v", err)
	}
}

func TestPipeIsRefusedAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o644); err != nil {
		t.Skip(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := Read(path, 10)
		done <- err
	}()
	select {
	case err := <-done:
		if !errors.Is(err, ErrNotRegular) {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("reading a pipe waits for its other end")
	}
}

func TestNothingOfTheOldFileIsPreserved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	hard := path + "-hard"
	if err := os.Link(path, hard); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
	old := syscall.Umask(0o027)
	err := Write(path, []byte("new"))
	syscall.Umask(old)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if data, err := os.ReadFile(hard); err != nil || len(data) != 0 {
		t.Errorf("the old file's other name now holds %q, %v", data, err)
	}
}
