//go:build unix

package runtime_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
)

// TestInstallWhileRunning has 20 processes install two versions again and again while the
// plugin is called again and again: every call runs the one or the other, whole.
func TestInstallWhileRunning(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allScopes...)
	second := filepath.Join(w.dir, "source-2")
	w.writePackage(second, "2.0.0")
	in, err := w.home.Install(t.Context(), second, pkgmgr.InstallOptions{})
	w.must(err)
	w.pkg = in.Package
	w.approve(allScopes...)

	tools := make([]*tool, processes())
	for i := range tools {
		source := w.source
		if i%2 == 1 {
			source = second
		}
		tools[i] = w.start(job{Do: "install", Source: source, Times: 5, Wait: true})
	}
	for _, k := range tools {
		k.in.Close()
	}
	installed := make(chan struct{})
	go func() {
		defer close(installed)
		for i, k := range tools {
			if a := k.answer(); a.Err != "" {
				t.Errorf("install %d: %+v", i, a)
			}
		}
	}()
	runs := map[string]int{}
	for done := false; !done; {
		select {
		case <-installed:
			done = true
		default:
		}
		r, err := w.inspect(0)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		runs[r.Version]++
		for _, f := range r.Inspect.Facts {
			if f.ID == "version" && f.Value != r.Version {
				t.Errorf("%s was approved and %s ran", r.Version, f.Value)
			}
		}
	}
	t.Logf("calls by version: %v", runs)
	if runs["1.0.0"]+runs["2.0.0"] < 2 {
		t.Errorf("hardly any call ran: %v", runs)
	}
	list, err := w.home.List(t.Context(), nil, allVersions)
	w.must(err)
	for _, i := range list {
		if i.Status != pkgmgr.StatusEnabled {
			t.Errorf("%s %s is %s: %v", i.ID, i.Version, i.Status, i.Err)
		}
	}
	w.wantNothingLeft()
}

// processes is how many work at once where many should.
func processes() int {
	if raced {
		return 4
	}
	return 20
}

// longRun makes the following test as long as it should be before a release.
const longRun = "SWITCHYARD_TEST_LONG"

// TestInstallAndRun installs a package that never was there before and calls it at
// once, again and again, while the same goes on beside it: a program that was written
// a moment ago is never busy.
func TestInstallAndRun(t *testing.T) {
	t.Parallel()
	rounds := 8
	if raced {
		rounds = 2
	}
	if os.Getenv(longRun) != "" {
		rounds = 250
	}
	var both sync.WaitGroup
	for range 2 {
		w := newWorld(t, allScopes...)
		both.Go(func() { w.installAndRun(rounds) })
	}
	both.Wait()
}

func (w *world) installAndRun(rounds int) {
	for i := range rounds {
		version := fmt.Sprintf("1.0.%d", i+1)
		w.writePackage(w.source, version)
		in, err := w.home.Install(w.t.Context(), w.source, pkgmgr.InstallOptions{})
		if err == nil {
			_, err = w.home.Trust(w.t.Context(), sample, nil, in.Package)
		}
		if err == nil {
			_, err = w.host.Enable(w.t.Context(), sample, nil, allScopes)
		}
		if err != nil {
			w.t.Errorf("round %d: %v", i, err)
			return
		}
		if r, err := w.inspect(0); err != nil || r.Version != version || len(r.Warnings) > 0 {
			w.t.Errorf("round %d: %+v, %v", i, r, err)
		}
	}
	w.wantNothingLeft()
}
