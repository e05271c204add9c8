package pkgmgr

import (
	"errors"
	"runtime"
	"testing"

	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
)

// A session package runs where its manifest says so, under a version that is new enough
// or says nothing of itself.
func TestRunnable(t *testing.T) {
	here := sessionmanifest.Runtime{OS: sessionmanifest.Systems, Architectures: sessionmanifest.Architectures}
	wants := func(v string) sessionmanifest.Runtime { r := here; r.MinHostVersion = &v; return r }
	elsewhere := here
	elsewhere.OS = []sessionmanifest.OS{"windows"}
	if runtime.GOOS == "windows" {
		elsewhere.OS = []sessionmanifest.OS{"linux"}
	}
	for _, c := range []struct {
		runtime sessionmanifest.Runtime
		host    string
		fault   string
	}{
		{here, "v1.0.0", ""},
		{wants("1.2"), "v1.2.0", ""},
		{wants("1.2"), "1.10.0-3-gabc", ""},
		{wants("1.2"), "v2.0", ""},
		{wants("1.2"), "devel", ""},
		{wants("1.2"), "9391086", ""},
		{wants("1.2"), "", ""},
		{wants("1.2"), "v1.1.9", "version"},
		{wants("2.0"), "v1.9.0", "version"},
		{elsewhere, "v9.0.0", "platform"},
	} {
		h := &Home{hostVersion: c.host}
		err := h.runnable(&Manifest{Session: &sessionmanifest.Manifest{Runtime: c.runtime}}, "x")
		fault := ""
		switch {
		case errors.As(err, new(*WrongPlatform)):
			fault = "platform"
		case errors.As(err, new(*HostTooOld)):
			fault = "version"
		}
		if fault != c.fault || (err == nil) != (fault == "") {
			t.Errorf("%+v under %q: %v, want %q", c.runtime, c.host, err, c.fault)
		}
	}
	if err := (&Home{hostVersion: "v0.1.0"}).runnable(&Manifest{}, "x"); err != nil {
		t.Error(err)
	}
}
