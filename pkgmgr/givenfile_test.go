//go:build unix

package pkgmgr

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/switchyard-plugins/switchyard/pkgmgr/archive"
	"github.com/switchyard-plugins/switchyard/verify"
	"github.com/switchyard-plugins/switchyard/verify/revlist"
)

// given puts at path what a user's directory can hold in a file's place. A link is
// followed: it is the user's.
func given(t *testing.T, kind, path string, limit int64) {
	t.Helper()
	must(t, os.RemoveAll(path))
	var err error
	switch kind {
	case "pipe":
		err = syscall.Mkfifo(path, 0o600)
	case "directory":
		err = os.Mkdir(path, 0o700)
	case "link to a pipe":
		other := filepath.Join(t.TempDir(), "pipe")
		if err = syscall.Mkfifo(other, 0o600); err == nil {
			err = os.Symlink(other, path)
		}
	case "link to a device":
		err = os.Symlink("/dev/zero", path)
	case "socket":
		var fd int
		if fd, err = syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0); err == nil {
			err = syscall.Bind(fd, &syscall.SockaddrUnix{Name: path})
			syscall.Close(fd)
		}
	case "a byte more":
		err = sparse(path, limit+1)
	}
	if err != nil {
		t.Skip(err)
	}
}

var givenKinds = []string{"pipe", "directory", "link to a pipe", "link to a device", "socket", "a byte more"}

// TestStrangeFilesInASource: whatever lies in the place of a list, a root, bundles or a key
// is refused by its code, and keeps nobody waiting. Only in the place of an earlier root is
// there nothing to look at where none is needed.
func TestStrangeFilesInASource(t *testing.T) {
	for name, c := range map[string]struct {
		limit       int64
		code, fault string
	}{
		ListFile:                 {revlist.MaxBytes, CodeListUnreadable, "list.too_large"},
		ListFile + BundlesSuffix: {maxBundlesBytes, CodeListUnreadable, "list.too_large"},
		RootFile:                 {revlist.MaxRootBytes, CodeRootUnreadable, "root.too_large"},
		RootFile + BundlesSuffix: {maxBundlesBytes, CodeRootUnreadable, "root.too_large"},
		"root.1.json":            {revlist.MaxRootBytes, CodeRootUnreadable, "root.too_large"},
		"other.pub":              {maxKeyBytes, CodeListUnreadable, "list.too_large"},
	} {
		for _, kind := range givenKinds {
			t.Run(name+" "+kind, func(t *testing.T) {
				f := newFleet(t)
				f.publish([]string{"root"}, []string{"list"})
				first := f.rootDigest()
				if name == "root.1.json" {
					f.root.Version = 2
					f.publish([]string{"root"}, []string{"list"})
				}
				path := filepath.Join(f.dir, name)
				given(t, kind, path, c.limit)
				err := soon(t, "an update", func() error { _, err := f.UpdateLists(f.ctx, f.dir, first); return err })
				says, fault := "is not a regular file", ""
				if kind == "a byte more" {
					says, fault = "more than", c.fault
				}
				if refused := listRefused(t, err, c.code, says); string(refused.Fault) != fault || !strings.Contains(refused.Reason, name) && name != ListFile+BundlesSuffix {
					t.Errorf("%+v", refused)
				}
				if left, err := os.ReadDir(f.join(stagingDir)); err != nil || len(left) > 0 {
					t.Errorf("staging holds %v, %v", left, err)
				}
			})
		}
	}
	// A link to a file is one.
	f := newFleet(t)
	f.publish([]string{"root"}, []string{"list"})
	for _, name := range []string{ListFile, RootFile, RootFile + BundlesSuffix} {
		other := filepath.Join(t.TempDir(), "file")
		must(t, os.Rename(filepath.Join(f.dir, name), other))
		must(t, os.Symlink(other, filepath.Join(f.dir, name)))
	}
	_, err := f.UpdateLists(f.ctx, f.dir, f.rootDigest())
	must(t, err)
}

// TestStrangeFilesBesideAnArchive: likewise for what is installed and locked.
func TestStrangeFilesBesideAnArchive(t *testing.T) {
	for _, kind := range givenKinds {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			bundle := filepath.Join(dir, "a.tar.zst.sigstore.json")
			given(t, kind, bundle, verify.MaxBundle)
			err := soon(t, "a bundle", func() error { _, err := readBundle(bundle); return err })
			if bad := as[*Malformed](t, err); bad.File != filepath.Base(bundle) || bad.Where != dir {
				t.Errorf("%+v", bad)
			}
			path := filepath.Join(dir, "a.tar.zst")
			given(t, kind, path, archive.Default.Archive)
			err = soon(t, "a digest", func() error { _, err := hashFile(path); return err })
			copied := soon(t, "a copy", func() error { _, _, err := copyHashed(t.Context(), path, filepath.Join(dir, "copy")); return err })
			if kind == "a byte more" {
				as[*archive.Refusal](t, err)
				return // a copy is refused by its size before it is made
			}
			as[*NotArchive](t, err)
			as[*Malformed](t, copied)
		})
	}
}

// TestStrangeFilesBesideAList: what is kept of an issuer is read as files of this program
// alone; anything else is a damage, never a list.
func TestStrangeFilesBesideAList(t *testing.T) {
	for _, name := range []string{seenFile, RootFile, sourceFile} {
		for kind, c := range strange {
			if kind == "a byte more" {
				continue // each file has a bound of its own
			}
			t.Run(name+" "+kind, func(t *testing.T) {
				f := newFleet(t)
				f.follow()
				path := f.issuerPath(issuer, name)
				must(t, os.Remove(path))
				if err := c.put(path); err != nil {
					t.Skip(err)
				}
				err := soon(t, "a listing", func() error { _, err := f.FollowedLists(); return err })
				if damaged := as[*ListsDamaged](t, err); damaged.Path != path || !strings.Contains(damaged.Error(), c.says) {
					t.Errorf("%v", err)
				}
				if name == seenFile {
					err = soon(t, "a question", func() error { return f.checkDenied(subject{Package: some(1)}) })
					if !errors.As(err, new(*ListsDamaged)) {
						t.Errorf("%v", err)
					}
				}
			})
		}
	}
	for kind, c := range strange {
		if kind == "a byte more" {
			continue
		}
		s := newSite(t)
		must(t, s.ensure(archivesDir))
		if err := c.put(s.evidencePath(some(1))); err != nil {
			continue
		}
		err := soon(t, "evidence", func() error { _, err := s.Evidence(some(1)); return err })
		if bad := as[*Malformed](t, err); !strings.Contains(bad.Error(), c.says) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
