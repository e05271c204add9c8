//go:build unix

package pkgmgr

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify/revlist"
)

func (f *fleet) dissent(about digest.Digest) {
	f.t.Helper()
	must(f.t, f.Dissent(f.ctx, revlist.Dissent{Digest: about, Reason: "not reachable here", ExpiresAt: f.now.Add(time.Hour)}))
}

// TestDissent: exactly what a digest is blocked by is not followed, for its time, and
// each use says so; what this machine itself denies stays denied.
func TestDissent(t *testing.T) {
	f := newFleet(t)
	f.deny(revlist.Entry{Kind: revlist.Archive, Digest: some(1)})
	f.deny(revlist.Entry{Kind: revlist.Version, PluginID: "x", Range: "*"})
	f.follow()
	byArchive := subject{ID: "y", Version: "1.0.0", Archive: some(1), Package: some(2)}
	byRange := subject{ID: "x", Version: "1.0.0", Package: some(3)}
	f.dissent(some(2)) // the package; the block is about its archive
	f.denied(byArchive, true)
	f.dissent(some(1))
	f.denied(byRange, true)
	f.dissent(some(3))
	for _, s := range []subject{byArchive, byRange} {
		f.said = nil
		f.denied(s, false)
		if len(f.said) != 1 || !strings.Contains(f.said[0], "not reachable here") {
			t.Errorf("said %q", f.said)
		}
	}
	f.denied(subject{ID: "x", Version: "1.0.0"}, true)

	_, err := f.Revoke(f.ctx, Denial{PluginID: "x", Reason: "here"})
	must(t, err)
	f.denied(byRange, true)
	_, err = f.Unrevoke(f.ctx, "x")
	must(t, err)
	f.denied(byRange, false)

	f.now = f.now.Add(time.Hour)
	f.denied(byRange, true)
	f.denied(byArchive, true)
}

// TestDissentHidesNoOtherBlock: of two blocks only the one that is not followed goes.
func TestDissentHidesNoOtherBlock(t *testing.T) {
	f := newFleet(t)
	f.deny(revlist.Entry{Kind: revlist.Archive, Digest: some(1)})
	f.deny(revlist.Entry{Kind: revlist.Manifest, Digest: some(2)})
	f.follow()
	s := subject{ID: "x", Version: "1.0.0", Archive: some(1), Manifest: some(2), Package: some(3)}
	f.dissent(some(1))
	f.denied(s, true)
	f.dissent(some(2))
	f.denied(s, false)
}

// TestWithdrawnDissentStopsCalls: what runs because a block was not followed is told
// to stop when it is followed again, and only that.
func TestWithdrawnDissentStopsCalls(t *testing.T) {
	f := newFleet(t)
	f.deny(revlist.Entry{Kind: revlist.Package, Digest: some(1)})
	f.dissent(some(1))
	running, err := f.beginCall(callMarker{PluginID: "x", Version: "1.0.0", Package: some(1)})
	must(t, err)
	defer running.End()
	other, err := f.beginCall(callMarker{PluginID: "y", Version: "1.0.0", Package: some(2)})
	must(t, err)
	defer other.End()
	if u := f.follow(); u.Stopped != 0 {
		t.Errorf("stopped %d by the update", u.Stopped)
	}
	stopped, err := f.WithdrawDissent(f.ctx, some(1))
	must(t, err)
	if _, asked := running.StopRequested(); stopped != 1 || !asked {
		t.Errorf("stopped %d, asked: %v", stopped, asked)
	}
	if _, asked := other.StopRequested(); asked {
		t.Error("the other call was told to stop")
	}
	_, err = f.WithdrawDissent(f.ctx, some(1))
	if missing := as[*NotFound](t, err); missing.Kind != "dissent" {
		t.Error(err)
	}
}

// TestDissentsThatCannotBeRead: nothing that a list blocks runs meanwhile.
func TestDissentsThatCannotBeRead(t *testing.T) {
	f := newFleet(t)
	f.deny(revlist.Entry{Kind: revlist.Package, Digest: some(1)})
	f.follow()
	f.dissent(some(1))
	path := f.join(revokedDir, dissentsFile)
	whole, err := os.ReadFile(path)
	must(t, err)
	for n := range whole {
		must(t, os.WriteFile(path, whole[:n], 0o600))
		var bad *Malformed
		if err := f.checkDenied(subject{Package: some(1)}); !errors.As(err, &bad) || bad.File != dissentsFile {
			t.Fatalf("cut at %d: %v", n, err)
		}
		must(t, f.checkDenied(subject{Package: some(2)}))
	}
	for name, c := range strange {
		t.Run(name, func(t *testing.T) {
			must(t, os.RemoveAll(path))
			if err := c.put(path); err != nil {
				t.Skip(err)
			}
			err := soon(t, "a check", func() error { return f.checkDenied(subject{Package: some(1)}) })
			if bad := as[*Malformed](t, err); bad.File != dissentsFile || bad.Where != filepath.Dir(path) {
				t.Error(err)
			}
		})
	}
}

// TestReservedIssuers: no list takes the place of a file of the program.
func TestReservedIssuers(t *testing.T) {
	for _, name := range []string{"local.json", "dissent.json", "local.json.new", "dissent.json.new"} {
		f := newFleet(t)
		f.root.Issuer = name
		var err error
		f.list, err = revlist.New(name, f.now, 24*time.Hour)
		must(t, err)
		f.publish([]string{"root"}, []string{"list"})
		f.refused(CodeIssuerReserved)
		if exists(f.join(revokedDir, name)) {
			t.Errorf("%s stands there", name)
		}
	}
}
