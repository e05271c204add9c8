//go:build unix

package pkgmgr

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/verify/policy"
)

// starts returns how many workers f starts, all of which must have ended.
func (a *assured) starts(f func()) int64 {
	a.t.Helper()
	before := a.notary.started.Load()
	f()
	if started, closed := a.notary.started.Load(), a.notary.closed.Load(); started != closed {
		a.t.Errorf("%d workers started, %d ended", started, closed)
	}
	return a.notary.started.Load() - before
}

// One worker answers for everything that a command asks: all bundles and the SBOM of an
// install, also where the bundles come from the store, and all packages of a verify.
func TestOneWorkerForACommand(t *testing.T) {
	a := newAssured(t)
	a.publishers(keyA)
	archive := sample{id: "signed", version: "1.0.0", files: map[string]string{sbomFile: `{"Files":[]}`}}.archive(t)
	sum, err := hashFile(archive)
	must(t, err)
	beside(t, archive, "", vouch(keyA, sum.Hex()))
	beside(t, archive, ".second", vouch(keyB, sum.Hex()))
	beside(t, archive, ".provenance", vouch(keyA, sum.Hex()))
	if n := a.starts(func() { a.install(archive) }); n != 1 {
		t.Errorf("install starts %d workers", n)
	}
	for _, label := range []string{"", ".second", ".provenance"} {
		must(t, os.Remove(archive+label+bundleSuffix))
	}
	if n := a.starts(func() {
		if done := a.install(archive); done.Report.Verdict != policy.Signed {
			t.Errorf("reinstalled as %s", done.Report.Verdict)
		}
	}); n != 1 {
		t.Errorf("a reinstall starts %d workers", n)
	}
	plain := sample{id: "plain", version: "1.0.0"}.archive(t)
	if n := a.starts(func() { a.install(plain) }); n != 0 {
		t.Errorf("an install without anything to prove starts %d workers", n)
	}
	for i := range 99 {
		path, hex := signedArchive(t, fmt.Sprintf("plugin-%d", i), "1.0.0")
		beside(t, path, "", vouch(keyA, hex))
		a.install(path)
	}
	if n := a.starts(func() {
		list, err := a.Verify(a.ctx, nil, nil)
		must(t, err)
		verified := 0
		for _, v := range list {
			if v.Signature == Verified {
				verified++
			}
		}
		if verified != 100 || len(list) != 101 {
			t.Errorf("%d of %d are verified", verified, len(list))
		}
	}); n != 1 {
		t.Errorf("verify of 100 signed packages starts %d workers", n)
	}
}

// The worker starts while the archive is extracted: each waits here until the other has
// begun.
func TestWorkerStartsBesideExtraction(t *testing.T) {
	starting, extracting := make(chan struct{}), make(chan struct{})
	await := func(what string, c chan struct{}) {
		select {
		case <-c:
		case <-time.After(20 * time.Second):
			t.Errorf("%s has not begun", what)
		}
	}
	n := &notary{}
	h, err := Open(filepath.Join(scratch(t), "data"), Options{
		Progress: Progress{Stage: func(name string) {
			if strings.HasPrefix(name, "extracting ") {
				close(extracting)
				await("the worker", starting)
			}
		}},
		Assurance: func() (*Assurance, error) {
			return &Assurance{Policy: policy.Default(), Start: func(ctx context.Context) (Prover, error) {
				close(starting)
				await("the extraction", extracting)
				return n.start(ctx)
			}}, nil
		},
	})
	must(t, err)
	path, hex := signedArchive(t, "signed", "1.0.0")
	beside(t, path, "", vouch(keyA, hex))
	_, err = h.Install(t.Context(), path, InstallOptions{})
	must(t, err)
	if n.started.Load() != 1 {
		t.Errorf("%d workers started", n.started.Load())
	}
}
