package commands

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// nobody is an ordinary user that every system has.
const nobody = 65534

// A user runs this test binary as switchyard, as an ordinary user of the system.
type user struct {
	t       *testing.T
	program string
	home    string
	cred    *syscall.Credential // nil: the test runs as an ordinary user already
}

func ordinaryUser(t *testing.T) *user {
	t.Helper()
	if testing.Short() {
		t.Skip("starts plugins")
	}
	// The directories of go test belong to the one who runs it.
	base, err := os.MkdirTemp("", "switchyard-user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := removeTree(base); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	u := &user{t: t, program: filepath.Join(base, "switchyard"), home: filepath.Join(base, "hôme dir")}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(u.program, program, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(u.home, 0o700); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		u.cred = &syscall.Credential{Uid: nobody, Gid: nobody}
		if err := os.Chown(u.home, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	return u
}

func (u *user) run(want int, args ...string) string {
	u.t.Helper()
	cmd := exec.Command(u.program, args...)
	cmd.Dir = u.home
	cmd.Env = []string{"HOME=" + u.home, "PATH=" + os.Getenv("PATH")}
	if u.cred != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: u.cred}
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		u.t.Fatal(err)
	}
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != want {
		u.t.Errorf("switchyard %q: exit %d, want %d\n%s", args, got, want, &out)
	}
	return out.String()
}

// On a read-only data directory everything that only looks or asks works, and
// what would have to be recorded refuses.
func TestReadOnlyDataDirectory(t *testing.T) {
	u := ordinaryUser(t)
	src := filepath.Join(filepath.Dir(u.home), "src")
	if err := makePlugin(src, "demo", "1.0.0", "good"); err != nil {
		t.Fatal(err)
	}
	u.run(exitOK, "install", src)
	var pkg string
	for _, field := range strings.Fields(u.run(exitOK, "review", "demo")) {
		if strings.HasPrefix(field, "sha256:") {
			pkg = field
			break
		}
	}
	u.run(exitOK, "trust", "demo", "--fingerprint", pkg)
	u.run(exitOK, "enable", "demo", "--scope", "project.metadata.read", "--scope", "project.operate")
	u.run(exitOK, "project", "trust", ".")
	data := filepath.Join(u.home, ".local", "share", "switchyard")
	withdrawWrite(t, data)

	u.run(exitOK, "list")
	u.run(exitOK, "show", "demo")
	u.run(exitOK, "review", "demo")
	u.run(exitOK, "verify")
	u.run(exitOK, "run", "demo", "health")
	u.run(exitOK, "run", "demo", "inspect")
	u.run(exitOK, "history")
	out := u.run(exitPermission, "run", "demo", "operate", "note")
	hint := "next: chmod u+w '" + data + "' '" + data + "/lock' '" + data + "/plugins'"
	if !strings.Contains(out, "read-only") || !strings.Contains(out, hint) {
		t.Errorf("operate: no %s in\n%s", hint, out)
	}
	for _, args := range [][]string{
		{"untrust", "demo"}, {"disable", "demo"}, {"revoke", "demo", "--reason", "x"},
		{"uninstall", "demo"}, {"project", "untrust", "."},
	} {
		u.run(exitPermission, args...)
	}
	other := filepath.Join(filepath.Dir(u.home), "other")
	if err := makePlugin(other, "other", "1.0.0", "good"); err != nil {
		t.Fatal(err)
	}
	u.run(exitPermission, "install", other)
}

func withdrawWrite(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.Chmod(path, info.Mode().Perm()&^0o222)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Another user's data directory, and one that others can write to, are refused.
func TestForeignDataDirectory(t *testing.T) {
	u := ordinaryUser(t)
	if u.cred == nil {
		t.Skip("only the superuser can make another user's directory")
	}
	dir := filepath.Join(filepath.Dir(u.home), "foreign")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if out := u.run(exitPermission, "list", "--data-dir", dir); !strings.Contains(out, "belongs to user 0") {
		t.Errorf("%s", out)
	}
	open := filepath.Join(filepath.Dir(u.home), "open")
	if err := os.Mkdir(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	u.run(exitPermission, "list", "--data-dir", filepath.Join(open, "data"))
}
