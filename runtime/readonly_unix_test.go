//go:build unix

package runtime_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
)

// TestReadOnly holds that health and inspect work on a data directory that cannot be
// written, and that operate refuses before anything is started.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		asNobody(t)
		return
	}
	w := newWorld(t, allScopes...)
	w.seal()
	w.open()
	w.work("trace", "stderr=2")
	before, event := w.recorded()
	if r, err := w.health(); err != nil || r.Health.Message != "so it says" {
		t.Errorf("health: %+v, %v", r, err)
	}
	if r, err := w.inspect(0); err != nil || len(r.Inspect.Facts) == 0 {
		t.Errorf("inspect: %+v, %v", r, err)
	}
	if !w.started() {
		t.Error("nothing was started")
	}
	var readOnly *pkgmgr.ReadOnly
	if _, err := w.run(operation("key", "{}")); !errors.As(err, &readOnly) {
		t.Errorf("operate: %v", err)
	}
	if w.started() || len(w.effects()) != 0 {
		t.Error("operate: the plugin was started")
	}
	w.behave("malformed")
	if _, err := w.inspect(0); err == nil || errors.As(err, &readOnly) {
		t.Errorf("a fault: %v", err)
	}
	if n, err := w.host.Recover(t.Context()); n != 0 || err != nil {
		t.Errorf("recover: %d, %v", n, err)
	}
	if health, e := w.recorded(); health != before || e.Seq != event.Seq {
		t.Errorf("something was recorded: %+v, %+v", health, e)
	}
	w.wantNothingLeft()
}

// seal makes the data directory unwritable.
func (w *world) seal() {
	w.t.Helper()
	w.must(filepath.WalkDir(w.data, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.Chmod(path, info.Mode().Perm()&0o555)
	}))
}

// asNobody runs the same test as a user to whom modes mean something.
func asNobody(t *testing.T) {
	t.Helper()
	const nobody = 65534
	dir, err := os.MkdirTemp("", "switchyard-nobody-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	program := filepath.Join(dir, "test")
	// A child that is forked meanwhile would keep the copy open for writing, and busy.
	syscall.ForkLock.RLock()
	copied := copyFile(program, must(os.Executable()))
	syscall.ForkLock.RUnlock()
	for _, err := range []error{
		copied, os.Chmod(program, 0o755), os.Chmod(dir, 0o700), os.Chown(dir, nobody, nobody),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		t.Skip("this root cannot become another user")
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
