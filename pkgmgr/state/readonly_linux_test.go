package state

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// readOnlyData returns a filled data directory below a directory that every user can
// pass, and a test binary that every user can run.
func readOnlyData(t *testing.T) (d *DB, exe string) {
	t.Helper()
	base, err := os.MkdirTemp("", "state")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = os.Chmod(filepath.Join(base, "data ö"), 0o700)
		_ = os.RemoveAll(base)
	})
	d = At(filepath.Join(base, "data ö"))
	fill(t, d, 2)
	if err := os.Mkdir(filepath.Join(d.dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	exe = filepath.Join(base, "state.test")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	from, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := os.OpenFile(exe, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	return d, exe
}

// expectReadOnly runs the child over the variants of a read-only data directory.
func expectReadOnly(t *testing.T, d *DB, run func() *exec.Cmd) {
	t.Helper()
	for _, variant := range []string{"with side file", "without side file"} {
		if variant == "without side file" {
			if err := os.Chmod(d.dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(d.lockPath()); err != nil {
				t.Fatal(err)
			}
		}
		out, err := run().CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != "as expected" {
			t.Errorf("%s: %v: %s", variant, err, out)
		}
	}
}

// TestReadOnlyByPermission: as a user who may not write.
func TestReadOnlyByPermission(t *testing.T) {
	d, exe := readOnlyData(t)
	expectReadOnly(t, d, func() *exec.Cmd {
		for path, mode := range map[string]os.FileMode{d.Path(): 0o444, d.lockPath(): 0o444, d.dir: 0o555, d.dir + "/empty": 0o555} {
			if err := os.Chmod(path, mode); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
		cmd := child(t, "read-only", d)
		if os.Geteuid() == 0 { // who may write everywhere
			cmd.Path = exe
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		cmd.Stderr = nil
		return cmd
	})
}

// TestReadOnlyFileSystem: on a read-only mount, in a mount namespace of its own.
func TestReadOnlyFileSystem(t *testing.T) {
	d, _ := readOnlyData(t)
	namespaces := &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	probe := exec.Command("/proc/self/exe", "-test.run=^$")
	probe.SysProcAttr = namespaces
	if err := probe.Run(); err != nil {
		t.Skipf("no user and mount namespaces here: %v", err)
	}
	expectReadOnly(t, d, func() *exec.Cmd {
		cmd := child(t, "read-only mount", d)
		cmd.SysProcAttr = namespaces
		cmd.Stderr = nil
		return cmd
	})
}

// childReadOnlyMount makes the data directory a read-only mount first.
func childReadOnlyMount(d *DB, args []string) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return os.NewSyscallError("mount", err)
	}
	if err := syscall.Mount(d.dir, d.dir, "", syscall.MS_BIND, ""); err != nil {
		return os.NewSyscallError("bind mount", err)
	}
	if err := syscall.Mount("", d.dir, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		return os.NewSyscallError("remount", err)
	}
	err := os.WriteFile(filepath.Join(d.dir, "x"), nil, 0o600)
	if !errors.Is(err, syscall.EROFS) {
		return errors.Join(errors.New("the mount can be written"), err)
	}
	return childReadOnly(d, args)
}

func init() { childRoles["read-only mount"] = childReadOnlyMount }
