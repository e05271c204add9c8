//go:build unix

package pkgmgr

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/pkgmgr/project"
)

// partEnv names the part that the re-executed test binary plays, killEnv the step
// at which it kills itself.
const (
	partEnv = "PKGMGR_TEST_PART"
	killEnv = "PKGMGR_TEST_KILL_AT"
)

func errorsAs(err error, target any) bool { return errors.As(err, target) }

func errorsIs(err, target error) bool { return errors.Is(err, target) }

// play performs a part in a process of its own.
func play(part string, args []string) error {
	if n, err := strconv.Atoi(os.Getenv(killEnv)); err == nil {
		stepAt(n, func(string) error {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		})
	}
	switch part {
	case "change":
		return change(args[0], args[1], args[2])
	case "open":
		_, err := openAt(args[0])
		return err
	case "install":
		return installPart(args[0], args[1:])
	case "install unless revoked":
		var denied *Revoked
		if err := installPart(args[0], args[1:]); !errors.As(err, &denied) {
			return err
		}
		return nil
	}
	return fmt.Errorf("unknown part %q", part)
}

// stepAt lets do happen at the n-th step from now.
func stepAt(n int, do func(name string) error) (restore func()) {
	count := 0
	step = func(name string) error {
		if count++; count == n {
			return do(name)
		}
		return nil
	}
	return func() { step = func(string) error { return nil } }
}

// inProcess runs a part in a process of its own.
func inProcess(t testing.TB, part string, env []string, args ...string) (output string, state *os.ProcessState) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(append(os.Environ(), partEnv+"="+part), env...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState
}

func killed(s *os.ProcessState) bool {
	ws, ok := s.Sys().(syscall.WaitStatus)
	return ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL
}

func openAt(dir string) (*Home, error) {
	return Open(dir, Options{Now: func() time.Time { return time.Now().Add(time.Hour) }})
}

// change performs one change: what the scenarios of the crash tests are about. aux
// is a directory beside the data directory with sources and a project.
func change(dir, aux, name string) error {
	ctx := context.Background()
	if name == "repair" {
		_, err := Repair(ctx, dir, Options{})
		return err
	}
	h, err := openAt(dir)
	if err != nil {
		return err
	}
	switch name {
	case "install":
		_, err = h.Install(ctx, filepath.Join(aux, "new.tar.zst"), InstallOptions{Default: DefaultReplace})
	case "beside":
		_, err = h.Install(ctx, filepath.Join(aux, "new.tar.zst"), InstallOptions{Default: DefaultKeep})
	case "use":
		_, err = h.Use(ctx, Ref{ID: "x", Version: "1.0.0"})
	case "uninstall":
		_, err = h.Uninstall(ctx, Ref{ID: "x"})
		var gone *NotFound
		if errors.As(err, &gone) {
			err = nil // the rerun of one that was finished by the recovery
		}
	case "gc":
		_, err = h.GC(ctx, GCOptions{})
	case "revoke":
		_, err = h.Revoke(ctx, Denial{PluginID: "x", Reason: "test"})
	case "unrevoke":
		_, err = h.Unrevoke(ctx, "x")
		var gone *NotFound
		if errors.As(err, &gone) {
			err = nil
		}
	case "trust":
		var r *Review
		if r, err = h.Review(ctx, Ref{ID: "x"}, nil); err == nil {
			_, err = h.Trust(ctx, Ref{ID: "x"}, nil, r.Package)
		}
	case "pin":
		var p *project.Project
		if p, err = project.Find(filepath.Join(aux, "project")); err == nil {
			_, err = h.Pin(ctx, p, []Ref{{ID: "x"}})
		}
	case "lock":
		var p *project.Project
		if p, err = project.Find(filepath.Join(aux, "project")); err == nil {
			_, err = h.Relock(ctx, p, nil, LockWrite)
		}
	default:
		err = fmt.Errorf("unknown change %q", name)
	}
	return err
}

func installPart(dir string, sources []string) error {
	h, err := openAt(dir)
	if err != nil {
		return err
	}
	for _, source := range sources {
		rule := DefaultUpgrade
		if strings.HasPrefix(source, "!") {
			rule, source = DefaultReplace, source[1:]
		}
		if _, err := h.Install(context.Background(), source, InstallOptions{Default: rule}); err != nil {
			return err
		}
	}
	return nil
}
