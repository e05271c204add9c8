//go:build unix

package pkgmgr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/pkgmgr/project"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
	"github.com/switchyard-plugins/switchyard/verify/revlist"
)

// aServer publishes a directory as https://lists.example/; what it refuses it has no file
// for.
type aServer struct {
	dir     string
	asked   []string
	public  []bool
	refuses map[string]*verify.Refusal // by name
	before  func(name string)
}

func (s *aServer) Fetch(_ context.Context, r verify.FetchRequest, w io.Writer) (*verify.Fetched, error) {
	name, ok := strings.CutPrefix(r.URL, "https://lists.example/")
	if !ok || strings.Contains(name, "/") {
		return nil, fmt.Errorf("asked for %s", r.URL)
	}
	s.asked, s.public = append(s.asked, name), append(s.public, r.Public)
	if s.before != nil {
		s.before(name)
	}
	if no := s.refuses[name]; no != nil {
		return nil, no
	}
	raw, err := os.ReadFile(filepath.Join(s.dir, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &verify.Refusal{Code: verify.CodeNetworkNotFound, Message: name + " does not exist (404)"}
	case err != nil:
		return nil, err
	case int64(len(raw)) > r.Limit:
		w.Write(raw[:r.Limit])
		return nil, &verify.Refusal{Code: verify.CodeNetworkTooLarge, Message: "too large"}
	}
	n, err := w.Write(raw)
	return &verify.Fetched{Bytes: int64(n)}, err
}

func (s *aServer) Close() {}

const onServer = "https://lists.example/"

// served is a fleet whose issuer publishes over https, too.
func served(t *testing.T) (*fleet, *aServer) {
	f := newFleet(t)
	s := &aServer{dir: f.dir, refuses: map[string]*verify.Refusal{}}
	f.fetcher = func(context.Context) (Fetcher, error) { return s, nil }
	return f, s
}

// turn makes the next root, with keys of its own, and leaves the one before beside it.
func (f *fleet) turn() {
	f.t.Helper()
	before := keysOfRoot(f.root)
	for _, suffix := range []string{"", BundlesSuffix} {
		raw, err := os.ReadFile(filepath.Join(f.dir, RootFile+suffix))
		must(f.t, err)
		must(f.t, os.WriteFile(filepath.Join(f.dir, EarlierRootFile(f.root.Version)+suffix), raw, 0o644))
	}
	next := *f.root
	next.Version++
	next.RootSigners = []verify.Signer{keyOfTest(fmt.Sprint("root", next.Version))}
	next.ListSigners = []verify.Signer{keyOfTest(fmt.Sprint("list", next.Version))}
	f.root = &next
	f.now = f.now.Add(time.Minute)
	f.bump()
	f.publish(append(before, keysOfRoot(f.root)...), []string{fmt.Sprint("list", next.Version)})
}

// keysOfRoot names the test keys that sign a root.
func keysOfRoot(r *revlist.Root) []string {
	if r.Version == 1 {
		return []string{"root"}
	}
	return []string{fmt.Sprint("root", r.Version)}
}

func listRefused(t *testing.T, err error, code, says string) *ListRefused {
	t.Helper()
	var refused *ListRefused
	if !errors.As(err, &refused) || refused.Code != code || !strings.Contains(refused.Reason, says) {
		t.Fatalf("error is %v, want %s that says %q", err, code, says)
	}
	return refused
}

// TestListOverHTTPS holds what is fetched, and that what did not change is not.
func TestListOverHTTPS(t *testing.T) {
	f, s := served(t)
	f.publish([]string{"root"}, []string{"list"})
	_, err := f.UpdateLists(f.ctx, onServer, "")
	if refused := listRefused(t, err, CodeRootUntrusted, ""); refused.Root != f.rootDigest() || refused.Source != onServer {
		t.Errorf("%+v", refused)
	}
	if !slices.Equal(s.asked, []string{RootFile}) {
		t.Errorf("asked for %q before the root is accepted", s.asked)
	}
	_, err = f.UpdateLists(f.ctx, onServer, f.rootDigest())
	must(t, err)
	s.asked = nil
	keys := []string{KeyFile(keyOfTest("list").Key), KeyFile(keyOfTest("root").Key)}
	u, err := f.UpdateIssuer(f.ctx, issuer)
	must(t, err)
	if want := append([]string{RootFile, ListFile + BundlesSuffix}, keys...); !u.Unchanged || !slices.Equal(s.asked, want) {
		t.Errorf("asked for %q, want %q", s.asked, want)
	}

	// A kept list that is damaged is fetched again.
	must(t, os.WriteFile(f.issuerPath(issuer, ListFile), []byte("x"), 0o600))
	s.asked = nil
	u, err = f.UpdateIssuer(f.ctx, issuer)
	must(t, err)
	if !u.Unchanged || !slices.Contains(s.asked, ListFile) {
		t.Errorf("asked for %q", s.asked)
	}

	// That nothing changed does not make it fresh.
	f.now = f.now.Add(25 * time.Hour)
	s.asked = nil
	u, err = f.UpdateIssuer(f.ctx, issuer)
	must(t, err)
	if u.Verdict.Outcome != revlist.Expired || slices.Contains(s.asked, ListFile) {
		t.Errorf("%+v, asked for %q", u.Verdict, s.asked)
	}
	f.now = f.root.ExpiresAt
	_, err = f.UpdateIssuer(f.ctx, issuer)
	listRefused(t, err, "root.expired", "")
}

// TestBundlesOfTheKeptListBesideAnother holds that the bundles that are kept make no other
// list than the kept one count.
func TestBundlesOfTheKeptListBesideAnother(t *testing.T) {
	f, s := served(t)
	f.deny(revlist.Entry{Kind: revlist.Package, Digest: some(1)})
	f.publish([]string{"root"}, []string{"list"})
	_, err := f.UpdateLists(f.ctx, onServer, f.rootDigest())
	must(t, err)
	bundles, err := os.ReadFile(filepath.Join(f.dir, ListFile+BundlesSuffix))
	must(t, err)
	f.list = &revlist.List{Issuer: issuer, Version: 100, IssuedAt: f.now, ExpiresAt: f.now.Add(time.Hour)}
	f.publish([]string{"root"}, nil)
	must(t, os.WriteFile(filepath.Join(f.dir, ListFile+BundlesSuffix), bundles, 0o644))
	u, err := f.UpdateIssuer(f.ctx, issuer)
	must(t, err)
	if !u.Unchanged {
		t.Errorf("%+v", u)
	}
	f.denied(subject{Package: some(1)}, true)

	// After a rotation the kept list counts only if who may sign by now signed it.
	f.root.ListSigners = []verify.Signer{keyOfTest("list")}
	f.turn()
	must(t, os.WriteFile(filepath.Join(f.dir, ListFile+BundlesSuffix), bundles, 0o644))
	s.asked = nil
	_, err = f.UpdateIssuer(f.ctx, issuer)
	listRefused(t, err, CodeListSigners, "")
	if slices.Contains(s.asked, ListFile) {
		t.Errorf("asked for %q", s.asked)
	}
}

// TestServersRefusals holds which code each has.
func TestServersRefusals(t *testing.T) {
	f, s := served(t)
	f.publish([]string{"root"}, []string{"list"})
	_, err := f.UpdateLists(f.ctx, onServer, f.rootDigest())
	must(t, err)
	f.bump()
	f.publish([]string{"root"}, []string{"list"})
	for _, name := range []string{RootFile, ListFile + BundlesSuffix, ListFile, KeyFile(keyOfTest("list").Key)} {
		s.refuses = map[string]*verify.Refusal{name: {Code: verify.CodeNetworkTimeout, Message: "too slow"}}
		_, err := f.UpdateIssuer(f.ctx, issuer)
		if no := as[*FetchRefused](t, err); no.Refusal.Code != verify.CodeNetworkTimeout || no.URL != onServer || no.Project {
			t.Errorf("%s: %+v", name, no)
		}
		s.refuses[name] = &verify.Refusal{Code: verify.CodeNetworkTooLarge}
		_, err = f.UpdateIssuer(f.ctx, issuer)
		code, fault := CodeListUnreadable, "list.too_large"
		if name == RootFile {
			code, fault = CodeRootUnreadable, "root.too_large"
		}
		if refused := listRefused(t, err, code, onServer+name); string(refused.Fault) != fault {
			t.Errorf("%s: %+v", name, refused)
		}
	}
	s.refuses = map[string]*verify.Refusal{ListFile: {Code: verify.CodeNetworkNotFound}}
	_, err = f.UpdateIssuer(f.ctx, issuer)
	if missing := as[*NotFound](t, err); missing.Name != onServer+ListFile {
		t.Errorf("%+v", missing)
	}
	// Without a root on the server the one that is known speaks for the issuer.
	s.refuses = map[string]*verify.Refusal{RootFile: {Code: verify.CodeNetworkNotFound}}
	u, err := f.UpdateIssuer(f.ctx, issuer)
	must(t, err)
	if u.Unchanged || u.RootAdopted {
		t.Errorf("%+v", u)
	}
	if left, err := os.ReadDir(f.join(stagingDir)); err != nil || len(left) > 0 {
		t.Errorf("staging holds %v, %v", left, err)
	}
}

// TestRotationsThatWereMissed holds that a machine catches up from the roots beside the
// newest, each signed as a rotation demands.
func TestRotationsThatWereMissed(t *testing.T) {
	for _, source := range []string{"directory", "server"} {
		t.Run(source, func(t *testing.T) {
			f, s := served(t)
			from := f.dir
			if source == "server" {
				from = onServer
			}
			f.deny(revlist.Entry{Kind: revlist.Package, Digest: some(1)})
			f.publish([]string{"root"}, []string{"list"})
			first := f.rootDigest()
			_, err := f.UpdateLists(f.ctx, from, first)
			must(t, err)
			f.root.ExpiresAt = f.now.Add(time.Hour)
			for range 4 {
				f.turn()
			}
			keep := func(name string) (restore func()) {
				path := filepath.Join(f.dir, name)
				raw, err := os.ReadFile(path)
				must(t, err)
				return func() { must(t, os.WriteFile(path, raw, 0o644)) }
			}

			restore := keep("root.3.json")
			must(t, os.Remove(filepath.Join(f.dir, "root.3.json")))
			_, err = f.UpdateLists(f.ctx, from, "")
			listRefused(t, err, "root.version", "there is no root.3.json beside it")
			other, err := os.ReadFile(filepath.Join(f.dir, "root.2.json"))
			must(t, err)
			must(t, os.WriteFile(filepath.Join(f.dir, "root.3.json"), other, 0o644))
			_, err = f.UpdateLists(f.ctx, from, "")
			listRefused(t, err, "root.version", "version 2 does not follow version 2")
			must(t, os.WriteFile(filepath.Join(f.dir, "root.3.json"), []byte("{}"), 0o644))
			_, err = f.UpdateLists(f.ctx, from, "")
			listRefused(t, err, CodeRootUnreadable, "")
			restore()

			restore = keep("root.3.json" + BundlesSuffix)
			raw, err := os.ReadFile(filepath.Join(f.dir, "root.3.json"))
			must(t, err)
			for _, by := range []string{"", "root3", "root2", "list2", "root"} {
				must(t, os.WriteFile(filepath.Join(f.dir, "root.3.json"+BundlesSuffix), fmt.Appendf(nil, "%s %s\n", by, digest.Of(raw)), 0o644))
				_, err = f.UpdateLists(f.ctx, from, "")
				listRefused(t, err, CodeRootSigners, "")
			}
			restore()
			f.denied(subject{Package: some(1)}, true)
			if root, _, err := f.Home.root(issuer); err != nil || root.Version != 1 {
				t.Fatalf("the root is %v, %v", root, err)
			}

			// Roots between may have expired.
			f.root.ExpiresAt = f.now.Add(2 * time.Hour)
			f.now = f.now.Add(90 * time.Minute)
			f.turn()
			s.asked = nil
			u, err := f.UpdateLists(f.ctx, from, "")
			must(t, err)
			if u.Root.Version != 6 || !u.RootAdopted {
				t.Errorf("%+v", u)
			}
			if source == "server" && (slices.Contains(s.asked, "root.1.json") || !slices.Contains(s.asked, "root.5.json"+BundlesSuffix)) {
				t.Errorf("asked for %q", s.asked)
			}
			f.denied(subject{Package: some(1)}, true)

			// A machine that starts empty may know the first root, or any, or another.
			for _, c := range []struct {
				first digest.Digest
				code  string
			}{{first, ""}, {f.rootDigest(), ""}, {some(7), CodeRootUntrusted}} {
				g := fleetAt(t, filepath.Join(scratch(t), "data"), f.dir)
				g.now, g.fetcher = f.now, f.fetcher
				u, err := g.UpdateLists(g.ctx, from, c.first)
				if c.code != "" {
					listRefused(t, err, c.code, string(f.rootDigest()))
					continue
				}
				must(t, err)
				if u.Root.Version != 6 || !u.RootAdopted || u.RootDigest != f.rootDigest() {
					t.Errorf("%s: %+v", c.first, u)
				}
				if left, err := readNames(g.issuerPath(issuer)); err != nil || len(left) != 7 {
					t.Errorf("beside the list lie %v, %v", left, err)
				}
			}
		})
	}
}

// TestRotationsAreBounded holds that a root with a huge version costs no more than a few
// files.
func TestRotationsAreBounded(t *testing.T) {
	f, s := served(t)
	f.publish([]string{"root"}, []string{"list"})
	first := f.rootDigest()
	_, err := f.UpdateLists(f.ctx, onServer, first)
	must(t, err)
	f.root.Version = revlist.MaxVersion
	f.publish([]string{"root"}, []string{"list"})
	s.asked = nil
	_, err = f.UpdateLists(f.ctx, onServer, "")
	listRefused(t, err, "root.version", "at most 256 rotations")
	if len(s.asked) != 1 {
		t.Errorf("asked for %q", s.asked)
	}
	// One who is trusted with a digest that never comes.
	raw, err := os.ReadFile(filepath.Join(f.dir, RootFile))
	must(t, err)
	s.before = func(name string) {
		if strings.HasPrefix(name, "root.9") {
			must(t, os.WriteFile(filepath.Join(f.dir, name), raw, 0o644))
		}
	}
	g := fleetAt(t, filepath.Join(scratch(t), "data"), f.dir)
	g.fetcher = f.fetcher
	s.asked = nil
	_, err = g.UpdateLists(g.ctx, onServer, some(1))
	listRefused(t, err, CodeRootUntrusted, "")
	if len(s.asked) != 1+maxRotations {
		t.Errorf("asked %d times", len(s.asked))
	}
}

// TestFetchingHasAnEnd holds that a server with many slow files is given up, too.
func TestFetchingHasAnEnd(t *testing.T) {
	f, s := served(t)
	f.follow()
	at, err := project.ParseListURL(onServer)
	must(t, err)
	late := &listServer{home: f.Home, fetcher: s, at: at, until: time.Now().Add(-time.Second)}
	_, err = late.read(f.ctx, RootFile, 10)
	if no := as[*FetchRefused](t, err); no.Refusal.Code != verify.CodeNetworkTimeout || len(s.asked) > 0 {
		t.Errorf("%+v, asked for %q", no, s.asked)
	}
}

// TestSourcesAreRemembered holds whose word that is: the user's.
func TestSourcesAreRemembered(t *testing.T) {
	f, s := served(t)
	f.follow()
	remembered := func(want string) {
		t.Helper()
		if got, err := f.ListSource(issuer); err != nil || got != want {
			t.Fatalf("it comes from %q, %v; want %q", got, err, want)
		}
	}
	remembered(f.dir)
	t.Chdir(filepath.Dir(f.dir))
	_, err := f.UpdateLists(f.ctx, filepath.Join(filepath.Base(f.dir), ListFile), "")
	must(t, err)
	remembered(filepath.Join(f.dir, ListFile))
	_, err = f.UpdateLists(f.ctx, "https://LISTS.example/list.json", "")
	must(t, err)
	remembered(onServer)

	// What a project says is fetched from public addresses, and not remembered; what is
	// refused is not, either.
	_, err = f.UpdateLists(f.ctx, f.dir, "")
	must(t, err)
	f.bump()
	f.publish([]string{"root"}, []string{"list"})
	s.public = nil
	_, err = f.UpdateProjectLists(f.ctx, onServer)
	must(t, err)
	if len(s.public) == 0 || slices.Contains(s.public, false) {
		t.Errorf("fetched from public addresses: %v", s.public)
	}
	remembered(f.dir)
	f.publish([]string{"root"}, nil)
	_, err = f.UpdateLists(f.ctx, onServer, "")
	listRefused(t, err, CodeListSigners, "")
	remembered(f.dir)

	// From there comes no other issuer's list.
	f.list, err = revlist.New("other.example.com", f.now, time.Hour)
	must(t, err)
	f.publish([]string{"root"}, []string{"list"})
	_, err = f.UpdateIssuer(f.ctx, issuer)
	listRefused(t, err, "list.wrong_issuer", "other.example.com")

	for text, says := range map[string]string{
		"":                                     "is empty",
		`{"format":2,"source":"/x"}`:           "has format 2",
		`{"format":1,"source":"x"}`:            "absolute path",
		`{"format":1,"source":"http://x/"}`:    "over https only",
		`{"format":1,"source":"/x","trust":1}`: "trust",
		strings.Repeat(" ", maxSourceBytes+1):  "more than",
	} {
		must(t, os.WriteFile(f.issuerPath(issuer, sourceFile), []byte(text), 0o600))
		_, err := f.UpdateIssuer(f.ctx, issuer)
		if damaged := as[*ListsDamaged](t, err); !strings.Contains(damaged.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
	must(t, os.Remove(f.issuerPath(issuer, sourceFile)))
	_, err = f.UpdateIssuer(f.ctx, issuer)
	listRefused(t, err, CodeNoSource, "")
}

// TestProjectsAddNoIssuer holds that what a project names is refused before anything but
// the root is fetched.
func TestProjectsAddNoIssuer(t *testing.T) {
	f, s := served(t)
	f.publish([]string{"root"}, []string{"list"})
	_, err := f.UpdateProjectLists(f.ctx, onServer)
	if refused := listRefused(t, err, CodeNotFollowed, "a project adds no issuer"); refused.Root != f.rootDigest() || refused.Source != onServer || refused.Issuer != issuer {
		t.Errorf("%+v", refused)
	}
	if !slices.Equal(s.asked, []string{RootFile}) {
		t.Errorf("asked for %q", s.asked)
	}
	must(t, os.Remove(filepath.Join(f.dir, RootFile)))
	_, err = f.UpdateProjectLists(f.ctx, onServer)
	listRefused(t, err, CodeNotFollowed, "")
	if there, err := f.issuers(); err != nil || len(there) != 0 {
		t.Errorf("%v is followed, %v", there, err)
	}
	// A rotation that the root before signed is none of the project's.
	f.follow()
	f.turn()
	u, err := f.UpdateProjectLists(f.ctx, onServer)
	must(t, err)
	if u.Root.Version != 2 {
		t.Errorf("%+v", u)
	}
}

// TestFetchingKeepsNobodyWaiting holds that other commands go on meanwhile, and that what
// they adopted is no step back afterwards.
func TestFetchingKeepsNobodyWaiting(t *testing.T) {
	f, s := served(t)
	f.follow()
	old := t.TempDir()
	must(t, os.CopyFS(old, os.DirFS(f.dir)))
	f.deny(revlist.Entry{Kind: revlist.Package, Digest: some(1)})
	f.publish([]string{"root"}, []string{"list"})
	newer := f.dir
	s.dir = old
	s.before = func(name string) {
		if name == ListFile+BundlesSuffix {
			s.before = nil
			_, err := f.UpdateLists(f.ctx, newer, "")
			must(t, err)
		}
	}
	_, err := f.UpdateLists(f.ctx, onServer, "")
	listRefused(t, err, "list.rollback", "")
	f.denied(subject{Package: some(1)}, true)

	// The same rotation twice at once is one.
	f.turn()
	s.dir = f.dir
	s.before = func(name string) {
		if name == ListFile {
			s.before = nil
			_, err := f.UpdateLists(f.ctx, f.dir, "")
			must(t, err)
		}
	}
	u, err := f.UpdateLists(f.ctx, onServer, "")
	must(t, err)
	if !u.Unchanged || u.RootAdopted || u.Root.Version != 2 {
		t.Errorf("%+v", u)
	}
}

// TestNobodyFetches holds that a Home without a Fetcher says so.
func TestNobodyFetches(t *testing.T) {
	f := newFleet(t)
	if _, err := f.UpdateLists(f.ctx, onServer, ""); !errors.Is(err, errNoFetcher) {
		t.Errorf("error is %v", err)
	}
	as[*BadListURL](t, func() error { _, err := f.UpdateLists(f.ctx, "http://lists.example/", ""); return err }())
}
