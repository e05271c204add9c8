//go:build unix

package runtime_test

import (
	"os"
	"path/filepath"
	"slices"
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
