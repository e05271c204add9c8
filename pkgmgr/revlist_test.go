//go:build unix

package pkgmgr

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
	"github.com/switchyard-plugins/switchyard/verify/policy"
	"github.com/switchyard-plugins/switchyard/verify/revlist"
)

const issuer = "security.example.com"

func keyOfTest(name string) verify.Signer { return verify.Signer{Key: string(digest.Of([]byte(name)))} }

// signerOfTest is who signs as NAME or IDENTITY,ISSUER.
func signerOfTest(name string) verify.Signer {
	if identity, issuer, ok := strings.Cut(name, ","); ok {
		return verify.Signer{Identity: identity, Issuer: issuer}
	}
	return keyOfTest(name)
}

// aProver takes a bundle "NAME DIGEST" for a signature by NAME over what has that
// digest.
type aProver struct{}

func (aProver) Bundle(_ context.Context, r verify.BundleRequest) (*verify.Facts, error) {
	name, over, _ := bytes.Cut(r.Document, []byte(" "))
	if string(over) != string(r.Artifact) {
		return nil, &verify.Refusal{Code: verify.CodeSignature, Message: "over something else"}
	}
	return &verify.Facts{Kind: r.Kind, Artifact: r.Artifact, Bundle: digest.Of(r.Document), Signer: signerOfTest(string(name))}, nil
}

func (aProver) Close() {}

// A fleet is a machine and an issuer whose lists it follows.
type fleet struct {
	*site
	now   time.Time
	rules *policy.Policy
	said  []string
	dir   string // what the issuer publishes
	list  *revlist.List
	root  *revlist.Root
}

func newFleet(t testing.TB) *fleet {
	t.Helper()
	return fleetAt(t, filepath.Join(scratch(t), "data"), t.TempDir())
}

func fleetAt(t testing.TB, data, dir string) *fleet {
	f := &fleet{now: time.Now().Add(time.Hour).UTC().Truncate(time.Second), rules: policy.Default(), dir: dir}
	h, err := Open(data, Options{
		Now:      func() time.Time { return f.now },
		Progress: Progress{Warn: func(text string) { f.said = append(f.said, text) }},
		Assurance: func() (*Assurance, error) {
			return &Assurance{Policy: f.rules, Start: func(context.Context) (Prover, error) { return aProver{}, nil }}, nil
		},
	})
	must(t, err)
	f.site = &site{Home: h, t: t, ctx: context.Background()}
	f.root = &revlist.Root{Issuer: issuer, Version: 1, ListSigners: []verify.Signer{keyOfTest("list")}, ListThreshold: 1,
		RootSigners: []verify.Signer{keyOfTest("root")}, RootThreshold: 1, ExpiresAt: f.now.Add(365 * 24 * time.Hour)}
	f.list, err = revlist.New(issuer, f.now, 24*time.Hour)
	must(t, err)
	return f
}

// publish writes root and list, signed by those who are named.
func (f *fleet) publish(rootBy, listBy []string) {
	f.t.Helper()
	put := func(name string, text []byte, by []string) {
		must(f.t, os.WriteFile(filepath.Join(f.dir, name), text, 0o644))
		var bundles []byte
		for _, one := range by {
			bundles = fmt.Appendf(bundles, "%s %s\n", one, digest.Of(text))
		}
		must(f.t, os.WriteFile(filepath.Join(f.dir, name+BundlesSuffix), bundles, 0o644))
	}
	var root, list bytes.Buffer
	must(f.t, revlist.WriteRoot(&root, f.root))
	must(f.t, revlist.Write(&list, f.list, versionRanges))
	put(RootFile, root.Bytes(), rootBy)
	put(ListFile, list.Bytes(), listBy)
}

func (f *fleet) rootDigest() digest.Digest {
	var b bytes.Buffer
	must(f.t, revlist.WriteRoot(&b, f.root))
	return digest.Of(b.Bytes())
}

// deny makes the next list, with one more entry.
func (f *fleet) deny(e revlist.Entry) {
	f.t.Helper()
	if e.Action == "" {
		e.Action = revlist.Block
	}
	if e.Reason == "" {
		e.Reason = revlist.Malicious
	}
	var err error
	f.list, err = f.list.With(e, versionRanges)
	must(f.t, err)
	f.bump()
}

func (f *fleet) bump() {
	f.t.Helper()
	var err error
	f.list, err = f.list.Bump(f.now, 24*time.Hour)
	must(f.t, err)
}

// follow publishes and adopts.
func (f *fleet) follow() *ListUpdate {
	f.t.Helper()
	f.publish([]string{"root"}, []string{"list"})
	u, err := f.UpdateLists(f.ctx, f.dir, f.rootDigest())
	must(f.t, err)
	return u
}

func (f *fleet) refused(code string) {
	f.t.Helper()
	_, err := f.UpdateLists(f.ctx, f.dir, "")
	var refused *ListRefused
	if !errors.As(err, &refused) || refused.Code != code {
		f.t.Fatalf("error is %v, want %s", err, code)
	}
}

func (f *fleet) denied(s subject, want bool) {
	f.t.Helper()
	err := f.checkDenied(s)
	var revoked *Revoked
	if errors.As(err, &revoked) != want || err != nil && revoked == nil {
		f.t.Fatalf("checkDenied says %v, want revoked: %v", err, want)
	}
}

func some(n int) digest.Digest { return digest.Of(fmt.Appendf(nil, "digest %d", n)) }

func TestListsDenyBySubject(t *testing.T) {
	f := newFleet(t)
	f.deny(revlist.Entry{Kind: revlist.Archive, Digest: some(1)})
	f.deny(revlist.Entry{Kind: revlist.Package, Digest: some(2)})
	f.deny(revlist.Entry{Kind: revlist.Manifest, Digest: some(3)})
	f.deny(revlist.Entry{Kind: revlist.Version, PluginID: "x", Range: ">=1.0.0 <2.0.0"})
	f.deny(revlist.Entry{Kind: revlist.Package, Digest: some(4), Action: revlist.Warn, Advisory: "https://example.com/4"})
	f.denied(subject{Archive: some(1)}, false)
	f.follow()
	for _, s := range []subject{{Archive: some(1)}, {Package: some(2)}, {Manifest: some(3)}, {ID: "x", Version: "1.5.0"}, {ID: "x"}, {ID: "x", Version: "nightly"}} {
		s.Package = cmpOr(s.Package, some(9))
		f.denied(s, true)
	}
	for _, s := range []subject{{Archive: some(2)}, {Package: some(1)}, {ID: "x", Version: "2.0.0"}, {ID: "y", Version: "1.5.0"}, {Fingerprint: some(2)}} {
		f.denied(s, false)
	}
	f.denied(subject{ID: "z", Version: "1", Package: some(4)}, false)
	if len(f.said) != 1 {
		t.Errorf("said %q, want one warning", f.said)
	}
}

func cmpOr(a, b digest.Digest) digest.Digest {
	if a != "" {
		return a
	}
	return b
}

func TestListsAreRefused(t *testing.T) {
	f := newFleet(t)
	root, list := []string{"root"}, []string{"list"}
	f.publish(root, list)
	f.refused(CodeRootUntrusted)
	f.publish([]string{"list"}, list)
	_, err := f.UpdateLists(f.ctx, f.dir, f.rootDigest())
	if refused := as[*ListRefused](t, err); refused.Code != CodeRootSigners {
		t.Error(err)
	}
	must(t, os.Remove(filepath.Join(f.dir, RootFile)))
	f.refused(CodeRootMissing)
	if there, err := f.issuers(); err != nil || len(there) != 0 {
		t.Fatalf("%v is followed after refusals (%v)", there, err)
	}
	f.deny(revlist.Entry{Kind: revlist.Package, Digest: some(1)})
	f.follow()

	first := f.list
	f.deny(revlist.Entry{Kind: revlist.Package, Digest: some(2)})
	for _, by := range [][]string{nil, {"root"}, {"thief"}, {"thief", "root", "thief"}} {
		f.publish(root, by)
		f.refused(CodeListSigners)
	}
	f.publish(root, []string{"thief", "list", "list"})
	if u, err := f.UpdateLists(f.ctx, f.dir, ""); err != nil || u.Was != first.Version || u.List.Version != f.list.Version || u.RootAdopted {
		t.Fatalf("%+v, %v", u, err)
	}
	f.denied(subject{Package: some(2)}, true)

	newest := f.list
	f.list = first
	f.publish(root, list)
	f.refused("list.rollback")
	f.list, err = first.With(revlist.Entry{Kind: revlist.Package, Digest: some(3), Action: revlist.Warn, Reason: revlist.Withdrawn}, versionRanges)
	must(t, err)
	f.bump()
	f.publish(root, list)
	f.refused("list.equivocation")

	f.list = newest
	f.now = f.now.Add(20 * time.Minute)
	f.bump()
	f.now = f.now.Add(-20 * time.Minute)
	f.publish(root, list)
	f.refused("list.future")
	f.denied(subject{Package: some(2)}, true)

	f.now = f.now.Add(48 * time.Hour)
	u, err := f.UpdateLists(f.ctx, f.dir, "")
	must(t, err)
	if u.Verdict.Outcome != revlist.Expired {
		t.Errorf("outcome is %s", u.Verdict.Outcome)
	}
	f.now = f.root.ExpiresAt
	f.bump()
	f.publish(root, list)
	f.refused("root.expired")
}

func TestThresholdCountsDistinctSigners(t *testing.T) {
	f := newFleet(t)
	f.root.ListSigners, f.root.ListThreshold = []verify.Signer{keyOfTest("one"), keyOfTest("two"), keyOfTest("three")}, 2
	f.publish([]string{"root"}, []string{"one", "one", "list"})
	_, err := f.UpdateLists(f.ctx, f.dir, f.rootDigest())
	if refused := as[*ListRefused](t, err); refused.Code != CodeListSigners {
		t.Error(err)
	}
	f.publish([]string{"root"}, []string{"three", "one"})
	u, err := f.UpdateLists(f.ctx, f.dir, f.rootDigest())
	must(t, err)
	if len(u.Signers) != 2 {
		t.Errorf("signed by %v", u.Signers)
	}
}

// An identity is who its issuer says it is: the same name by another issuer, a longer
// name and a key do not sign for it.
func TestListsSignedByIdentities(t *testing.T) {
	const who = "release@example.com,https://accounts.example.com"
	f := newFleet(t)
	f.root.ListSigners, f.root.RootSigners = []verify.Signer{signerOfTest(who)}, []verify.Signer{signerOfTest("root@example.com,https://accounts.example.com")}
	root := []string{"root@example.com,https://accounts.example.com"}
	for _, by := range []string{"release@example.com", "release@example.com,https://accounts.example.com.evil.example", "release@example.com,https://evil.example",
		"xrelease@example.com,https://accounts.example.com", "release@example.com.evil.example,https://accounts.example.com", root[0]} {
		f.publish(root, []string{by})
		_, err := f.UpdateLists(f.ctx, f.dir, f.rootDigest())
		if refused := as[*ListRefused](t, err); refused.Code != CodeListSigners {
			t.Errorf("%s: %v", by, err)
		}
	}
	f.publish(root, []string{who})
	u, err := f.UpdateLists(f.ctx, f.dir, f.rootDigest())
	must(t, err)
	if !slices.Equal(u.Signers, f.root.ListSigners) {
		t.Errorf("signed by %v", u.Signers)
	}
}

// A thief of the list key signs the highest version there is; the next root locks the
// key out and honest versions begin anew.
func TestRotationLocksOutAStolenListKey(t *testing.T) {
	f := newFleet(t)
	f.deny(revlist.Entry{Kind: revlist.Package, Digest: some(1)})
	f.follow()
	honest := f.list
	f.list = &revlist.List{Issuer: issuer, Version: revlist.MaxVersion, IssuedAt: f.now, ExpiresAt: f.now.Add(time.Hour)}
	f.follow()
	f.denied(subject{Package: some(1)}, false)
	stolen := f.list

	f.now = f.now.Add(time.Minute)
	f.list = honest
	f.bump()
	f.root.Version, f.root.ListSigners, f.root.RootSigners = 2, []verify.Signer{keyOfTest("list2")}, []verify.Signer{keyOfTest("root2")}
	for _, by := range [][]string{{"root"}, {"root2"}, {"list", "root2"}} {
		f.publish(by, []string{"list2"})
		f.refused(CodeRootSigners)
	}
	f.publish([]string{"root", "root2"}, []string{"list"})
	f.refused(CodeListSigners)
	f.publish([]string{"root", "root2"}, []string{"list2"})
	u, err := f.UpdateLists(f.ctx, f.dir, "")
	must(t, err)
	if !u.RootAdopted || u.Root.Version != 2 {
		t.Errorf("%+v", u)
	}
	f.denied(subject{Package: some(1)}, true)
	f.list = stolen
	f.publish([]string{"root", "root2"}, []string{"list", "list2"})
	f.refused("list.rollback")
	f.root.Version = 4
	f.publish([]string{"root", "root2"}, []string{"list2"})
	f.refused("root.version")
}

// Whatever is done to the files, nobody is told that a revoked package is not.
func TestDamagedListsNeverAcquit(t *testing.T) {
	for _, name := range []string{revlist.IndexName, ListFile, seenFile, RootFile, revlist.IndexName + " and " + ListFile} {
		t.Run(name, func(t *testing.T) {
			for _, how := range []string{"gone", "empty", "cut", "flipped", "older"} {
				f := newFleet(t)
				f.follow()
				old := map[string][]byte{}
				for _, one := range []string{revlist.IndexName, ListFile, seenFile, RootFile} {
					raw, err := os.ReadFile(f.issuerPath(issuer, one))
					must(t, err)
					old[one] = raw
				}
				f.now = f.now.Add(time.Minute)
				f.deny(revlist.Entry{Kind: revlist.Package, Digest: some(1)})
				f.follow()
				names := []string{name}
				if name != revlist.IndexName && name != ListFile && name != seenFile && name != RootFile {
					names = []string{revlist.IndexName, ListFile}
				}
				for _, one := range names {
					harm(t, f.issuerPath(issuer, one), how, old[one])
				}
				err := f.checkDenied(subject{Package: some(1)})
				if err != nil {
					continue // *Revoked or a refusal
				}
				// Only where nothing is left of the list is there nothing that denies, and
				// then its silence is not believed.
				lists, err := f.listStates(nil)
				if err != nil || len(names) == 1 || lists[0].State == policy.ListFresh {
					t.Errorf("%s: %s: acquitted, %v, %v", name, how, lists, err)
				}
			}
		})
	}
}

func harm(t *testing.T, path, how string, old []byte) {
	t.Helper()
	raw, err := os.ReadFile(path)
	must(t, err)
	switch how {
	case "gone":
		must(t, os.Remove(path))
		return
	case "empty":
		raw = nil
	case "cut":
		raw = raw[:len(raw)/2]
	case "flipped":
		for i := range raw {
			raw[i] ^= 1
		}
	case "older":
		raw = old
	}
	must(t, os.WriteFile(path, raw, 0o600))
}

func TestDamagedIndexIsBuiltAgain(t *testing.T) {
	f := newFleet(t)
	f.deny(revlist.Entry{Kind: revlist.Package, Digest: some(1)})
	f.follow()
	path := f.issuerPath(issuer, revlist.IndexName)
	whole, err := os.ReadFile(path)
	must(t, err)
	harm(t, path, "flipped", nil)
	f.denied(subject{Package: some(1)}, true)
	f.denied(subject{Package: some(2)}, false)
	mended, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(whole, mended) {
		t.Errorf("the index was not built again (%v)", err)
	}
}

// An update that stops at any step leaves the old list or the new one in force, and
// the same update succeeds afterwards.
func TestUpdateStopsAtEveryStep(t *testing.T) {
	stop := errors.New("stop")
	for _, kind := range []string{"first", "next", "rotation"} {
		for n := 1; ; n++ {
			f := newFleet(t)
			f.deny(revlist.Entry{Kind: revlist.Package, Digest: some(1)})
			if kind != "first" {
				f.follow()
			}
			f.now = f.now.Add(time.Minute)
			f.deny(revlist.Entry{Kind: revlist.Package, Digest: some(2)})
			by := []string{"root"}
			if kind == "rotation" {
				f.root.Version, f.list.Version = 2, 1
				f.root.RootSigners = []verify.Signer{keyOfTest("root2")}
				by = append(by, "root2")
			}
			f.publish(by, []string{"list"})
			reached := false
			restore := stepAt(n, func(string) error { reached = true; return stop })
			_, err := f.UpdateLists(f.ctx, f.dir, f.rootDigest())
			restore()
			if !reached {
				must(t, err)
				if n < 3 {
					t.Fatalf("%s: only %d steps", kind, n)
				}
				break
			}
			if err != nil && !errors.Is(err, stop) { // nil: it was done, and only tidying up stopped
				t.Fatalf("%s, step %d: %v", kind, n, err)
			}
			f.denied(subject{Package: some(3)}, false)
			if kind != "first" {
				f.denied(subject{Package: some(1)}, true)
			}
			if lists, err := f.listStates(nil); err != nil || slices.ContainsFunc(lists, func(l policy.List) bool { return l.State != policy.ListFresh }) {
				t.Fatalf("%s, step %d: %v, %v", kind, n, lists, err)
			}
			_, err = f.UpdateLists(f.ctx, f.dir, f.rootDigest())
			if err != nil {
				t.Fatalf("%s, after step %d: %v", kind, n, err)
			}
			f.denied(subject{Package: some(1)}, true)
			f.denied(subject{Package: some(2)}, true)
		}
	}
}

// listStates is what the policy is told of the lists.
func (f *fleet) listStates(floors []lockfile.Floor) ([]policy.List, error) {
	lists, err := f.openLists()
	if err != nil {
		return nil, err
	}
	defer lists.close()
	return lists.states(floors, f.now), nil
}

// listsAllowCall says how lists that are not fresh stand in the way of a call.
func (f *fleet) listsAllowCall(lock *Lock) error {
	lists, err := f.openLists()
	if err != nil {
		return err
	}
	defer lists.close()
	return f.allowCall(lists, lock)
}

func TestListsThatAreNotFresh(t *testing.T) {
	f := newFleet(t)
	x := sample{id: "x", version: "1.0.0"}.archive(t)
	f.follow()
	f.install(x)
	f.trust("x")
	must(t, f.listsAllowCall(nil))
	floor := &Lock{File: (&lockfile.File{}).WithFloor(issuer, 5)}
	elsewhere := &Lock{File: (&lockfile.File{}).WithFloor("other.example.com", 1)}
	for _, lock := range []*Lock{floor, elsewhere} {
		f.said = nil
		must(t, f.listsAllowCall(lock))
		if len(f.said) != 1 {
			t.Errorf("said %q", f.said)
		}
	}
	lists, err := f.listStates(floor.File.Revocations)
	if err != nil || lists[0].State != policy.ListRolledBack {
		t.Errorf("%v, %v", lists, err)
	}
	lists, err = f.listStates(elsewhere.File.Revocations)
	if err != nil || len(lists) != 2 || lists[1].State != policy.ListAbsent {
		t.Errorf("%v, %v", lists, err)
	}

	f.now = f.now.Add(25 * time.Hour)
	_, err = f.Install(f.ctx, sample{id: "y", version: "1.0.0"}.archive(t), InstallOptions{})
	if failed := as[*policy.Refusal](t, err).Report.Failed(); failed[0].Code != policy.CodeListStale {
		t.Error(err)
	}
	f.said = nil
	must(t, f.listsAllowCall(nil))
	if len(f.said) != 1 {
		t.Errorf("said %q", f.said)
	}
	f.rules.ListsStale.Run = policy.Refuse
	as[*ListsNotFresh](t, f.listsAllowCall(nil))
	f.rules.ListsStale.Run = policy.Warn
	f.rules.MaxListAge = time.Minute
	f.bump()
	f.follow()
	f.now = f.now.Add(time.Hour)
	f.rules.ListsStale.Run = policy.Refuse
	as[*ListsNotFresh](t, f.listsAllowCall(nil))
}

func TestUpdateStopsRunningCalls(t *testing.T) {
	f := newFleet(t)
	f.follow()
	bad, err := f.beginCall(callMarker{PluginID: "x", Version: "1.0.0", Package: some(1)})
	must(t, err)
	defer bad.End()
	good, err := f.beginCall(callMarker{PluginID: "y", Version: "1.0.0", Package: some(2)})
	must(t, err)
	defer good.End()
	f.deny(revlist.Entry{Kind: revlist.Package, Digest: some(1)})
	f.deny(revlist.Entry{Kind: revlist.Package, Digest: some(2), Action: revlist.Warn})
	if u := f.follow(); u.Stopped != 1 {
		t.Errorf("stopped %d", u.Stopped)
	}
	if why, asked := bad.StopRequested(); !asked || why != StopRevoked {
		t.Errorf("%s, %v", why, asked)
	}
	if _, asked := good.StopRequested(); asked {
		t.Error("the other call was told to stop")
	}
}

func TestAffected(t *testing.T) {
	f := newFleet(t)
	x := sample{id: "x", version: "1.0.0"}
	f.install(x.archive(t))
	f.install(sample{id: "y", version: "1.0.0"}.archive(t))
	f.deny(revlist.Entry{Kind: revlist.Version, PluginID: "x", Range: "*"})
	if list, err := f.Affected(f.ctx, nil); err != nil || len(list) != 0 {
		t.Fatalf("%v, %v", list, err)
	}
	f.follow()
	lock := &Lock{File: (&lockfile.File{}).With(lockfile.Plugin{ID: "x", Version: "3.0.0",
		Platforms: map[string]lockfile.Platform{"linux/arm64": {Archive: some(1), Package: some(2), Manifest: some(3), Fingerprint: some(4)}}})}
	list, err := f.Affected(f.ctx, lock)
	must(t, err)
	if len(list) != 2 || !list[0].Installed || list[0].Package != x.digest(t) || list[1].Installed || list[1].Locked != "linux/arm64" {
		t.Errorf("%+v", list)
	}
}

// An archive that a lock names is verified under the lock's floors, installed or not; one
// that it does not name is not.
func TestVerifyUnderTheLocksFloors(t *testing.T) {
	f := newFleet(t)
	f.follow()
	of := sample{id: "x", version: "1.0.0"}
	path := of.archive(t)
	f.install(path)
	contents, err := f.ReviewArchive(f.ctx, path)
	must(t, err)
	locking := func(archive digest.Digest, floor int64) *Lock {
		file := (&lockfile.File{}).With(lockfile.Plugin{ID: "x", Version: "1.0.0", Source: "x.tar", Platforms: map[string]lockfile.Platform{
			lockfile.Any: {Archive: archive, Package: contents.Package, Manifest: contents.ManifestDigest, Fingerprint: contents.Fingerprint}}})
		return &Lock{File: file.WithFloor(issuer, floor)}
	}
	sum, err := hashFile(path)
	must(t, err)
	for _, c := range []struct {
		what    string
		lock    *Lock
		refused bool
	}{
		{"the floor is the list's version", locking(sum, 1), false},
		{"the floor is above it", locking(sum, 5), true},
		{"another archive is locked", locking(some(7), 5), false},
	} {
		results, err := f.Verify(f.ctx, nil, c.lock)
		must(t, err)
		archived, err := f.VerifyArchive(f.ctx, path, "", Asked{Lock: c.lock})
		must(t, err)
		for _, v := range append(results, archived) {
			var refusal *policy.Refusal
			if got := errors.As(v.Err, &refusal); got != c.refused {
				t.Errorf("%s: %s: %v", c.what, v.Where, v.Err)
			} else if got && refusal.Report.Failed()[0].Code != policy.CodeListStale {
				t.Errorf("%s: %s: %v", c.what, v.Where, v.Err)
			}
		}
	}
}
