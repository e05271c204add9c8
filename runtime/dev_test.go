//go:build unix

package runtime_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/runtime"
)

// TestDev holds that the author's loop runs what stands in the source, changed or
// not, with every scope, and needs no decision.
func TestDev(t *testing.T) {
	t.Parallel()
	w := newUntrustedWorld(t)
	for _, version := range []string{"1.0.0", "1.0.1", "0.9.0"} {
		w.writePackage(w.source, version)
		w.data = filepath.Join(w.dir, "scratch-"+version)
		w.open()
		req := runtime.Request{CallRequest: pkgmgr.CallRequest{Method: pkgmgr.MethodInspect, Project: w.project}}
		result, installed, err := w.host.Dev(t.Context(), w.source, req)
		w.must(err)
		if installed.Version != version || result.Version != version || !slices.Equal(result.Granted, allScopes) {
			t.Errorf("%s: granted %q of version %s", version, result.Granted, result.Version)
		}
		if _, event := w.recorded(); event.Detail["dev"] != "true" {
			t.Errorf("%s: event %+v", version, event)
		}
	}
	// What cannot be installed is told as an install tells it.
	w.must(os.Remove(filepath.Join(w.source, "plugin.json")))
	if _, _, err := w.host.Dev(t.Context(), w.source, runtime.Request{}); err == nil {
		t.Error("a package without a manifest runs")
	}
	w.wantNothingLeft()
}

// TestDevOfRevoked holds that what is revoked on this machine does not run in the
// author's loop either, by whatever it was revoked.
func TestDevOfRevoked(t *testing.T) {
	t.Parallel()
	w := newUntrustedWorld(t)
	real := w.home
	for i, subject := range []string{string(w.pkg), "PLUGIN@<2.0.0"} {
		in, err := real.Check(t.Context(), w.source)
		w.must(err)
		denial, err := pkgmgr.ParseDenial(strings.Replace(subject, "PLUGIN", in.Manifest.ID, 1), "test")
		w.must(err)
		_, err = real.Revoke(t.Context(), denial)
		w.must(err)
		w.data = filepath.Join(w.dir, "scratch-"+strconv.Itoa(i))
		w.open()
		w.host.Denials = real
		req := runtime.Request{CallRequest: pkgmgr.CallRequest{Method: pkgmgr.MethodHealth}}
		var revoked *pkgmgr.Revoked
		if _, _, err := w.host.Dev(t.Context(), w.source, req); !errors.As(err, &revoked) {
			t.Errorf("%s: %v", subject, err)
		}
		in, err = real.Check(t.Context(), w.source)
		w.must(err)
		if !slices.ContainsFunc(in.Warnings, func(s string) bool { return strings.Contains(s, "revoked here") }) {
			t.Errorf("check: %q", in.Warnings)
		}
		_, err = real.Unrevoke(t.Context(), denial.Subject())
		w.must(err)
	}
	w.wantNothingLeft()
}
