//go:build unix

package pkgmgr

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
)

// strange puts at path what is no file of this program, one kind after another.
var strange = map[string]struct {
	put  func(path string) error
	says string
}{
	"pipe":        {func(p string) error { return syscall.Mkfifo(p, 0o600) }, "not a regular file"},
	"link":        {func(p string) error { return os.Symlink("/dev/zero", p) }, "symbolic link"},
	"directory":   {func(p string) error { return os.Mkdir(p, 0o700) }, "not a regular file"},
	"endless":     {func(p string) error { return sparse(p, 1<<40) }, "more than"},
	"a byte more": {func(p string) error { return sparse(p, maxDenialBytes+2) }, "more than"},
}

func sparse(path string, size int64) error {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	return os.Truncate(path, size)
}

// soon fails the test when do has not returned after a while.
func soon(t *testing.T, what string, do func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-time.After(20 * time.Second):
		t.Fatalf("%s hangs", what)
		return nil
	}
}

// TestStrangeFilesInTheDataDirectory: what is read whole is a regular file of a
// bounded size, or the fault is named; a listing never waits and never fills memory.
func TestStrangeFilesInTheDataDirectory(t *testing.T) {
	for name, c := range strange {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.install(sample{id: "x", version: "1.0.0"}.dir(t))
			must(t, s.ensure(revokedDir, runningDir, quarantineDir))
			put := func(parts ...string) string {
				path := s.join(parts...)
				if err := c.put(path); err != nil {
					t.Skip(err)
				}
				return path
			}
			path := put(revokedDir, denialsFile)
			err := soon(t, "list", func() error { _, err := s.List(s.ctx, nil, true); return err })
			var bad *Malformed
			if !errors.As(err, &bad) || bad.File != denialsFile || bad.Where != filepath.Dir(path) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
			must(t, os.RemoveAll(path))

			// A note says no more than the digest does; a marker that cannot be read
			// marks no call that could be found by a denial.
			_, err = s.Revoke(s.ctx, Denial{PluginID: "x", Reason: "r"})
			must(t, err)
			list, err := s.quarantinedTrees()
			must(t, err)
			if len(list) != 1 {
				t.Fatalf("%d trees in quarantine", len(list))
			}
			must(t, os.Remove(s.quarantinePath(list[0])+".json"))
			note := put(quarantineDir, list[0].DirName()+".json")
			marker := put(runningDir, newUUID(s.now()))
			must(t, soon(t, "list", func() error { _, err := s.List(s.ctx, nil, true); return err }))
			_, err = readQuarantineNote(s.quarantinePath(list[0]))
			if !errors.As(err, &bad) {
				t.Errorf("note: %v", err)
			}
			if _, err := s.readMarker(filepath.Base(marker)); !errors.As(err, &bad) {
				t.Errorf("marker: %v", err)
			}
			must(t, soon(t, "a revocation", func() error { _, err := s.Revoke(s.ctx, Denial{PluginID: "y", Reason: "r"}); return err }))
			soon(t, "dead calls", func() error { s.DeadCalls(); return nil })
			must(t, os.RemoveAll(note))

			stage, err := s.newStage()
			must(t, err)
			put(stagingDir, filepath.Base(stage.path), intentFile)
			soon(t, "an intent", func() error {
				if _, begun := stage.readIntent(); begun {
					t.Error("an intent was read")
				}
				return nil
			})
			stage.discard()
		})
	}
}

// TestPipesAtLocksAndDatabase: no command waits for the other end of a pipe.
func TestPipesAtLocksAndDatabase(t *testing.T) {
	for _, name := range []string{mutationLock, state.LockName, state.FileName, revokedDir + "/" + denialsFile + ".new"} {
		s := newSite(t)
		dir := sample{id: "x", version: "1.0.0"}.dir(t)
		must(t, s.ensure(revokedDir))
		if err := syscall.Mkfifo(s.join(name), 0o600); err != nil {
			t.Skip(err)
		}
		for what, do := range map[string]func() error{
			"list":    func() error { _, err := s.List(s.ctx, nil, true); return err },
			"install": func() error { _, err := s.Install(s.ctx, dir, InstallOptions{}); return err },
			"revoke":  func() error { _, err := s.Revoke(s.ctx, Denial{PluginID: "y", Reason: "r"}); return err },
		} {
			err := soon(t, what, do)
			if name == state.FileName && what != "revoke" && !errors.Is(err, state.ErrCorrupt) {
				t.Errorf("%s with a pipe as the database: %v", what, err)
			}
		}
	}
}
