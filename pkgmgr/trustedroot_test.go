package pkgmgr

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
)

// A fakeTUF is a mirror and a prover of it: a document below one root. What TUF proves is
// tested with the worker; here it is what an update makes of answers.
type fakeTUF struct {
	document string
	refuse   map[string]verify.Code // by the URL's last part
	roots    int64                  // how many follow the first
	endless  bool                   // the prover never has enough
	asked    []verify.TUFRequest
	fetched  []string
	during   func()
}

func (f *fakeTUF) Close() {}

func (f *fakeTUF) Fetch(_ context.Context, r verify.FetchRequest, w io.Writer) (*verify.Fetched, error) {
	name := filepath.Base(r.URL)
	f.fetched = append(f.fetched, r.URL)
	if code := f.refuse[name]; code != "" {
		return nil, &verify.Refusal{Code: code, Message: "no"}
	}
	if f.during != nil {
		f.during()
	}
	text := name
	switch {
	case name == verify.TrustedRootTarget:
		text = f.document
	case len(name) > 10 && name[len(name)-10:] == ".root.json" && int64(name[0]-'0') > f.roots+1:
		return nil, &verify.Refusal{Code: verify.CodeNetworkNotFound, Message: "no"}
	}
	n, err := io.WriteString(w, text)
	return &verify.Fetched{Bytes: int64(n)}, err
}

func (f *fakeTUF) TUF(_ context.Context, r verify.TUFRequest) (*verify.TUFAnswer, error) {
	f.asked = append(f.asked, r)
	a := &verify.TUFAnswer{Root: []byte("1"), RootVersion: 1}
	if r.Root != nil && string(r.Root) != "first" && string(r.Root) != "1" {
		a.Root, a.RootVersion = r.Root, int64(r.Root[0]-'0')
	}
	need := func(role verify.TUFRole, path string) (*verify.TUFAnswer, error) {
		a.Need = &verify.TUFFile{Role: role, Path: path, Limit: 1000}
		return a, nil
	}
	switch {
	case r.NextRoot != nil:
		a.Root, a.RootVersion = r.NextRoot, a.RootVersion+1
		return need(verify.TUFTimestamp, "timestamp.json")
	case r.Offered.Timestamp == nil || f.endless:
		return need(verify.TUFTimestamp, "timestamp.json")
	case r.Offered.Snapshot == nil:
		return need(verify.TUFSnapshot, "snapshot.json")
	case r.Offered.Targets == nil:
		return need(verify.TUFTargets, "targets.json")
	case r.Document == nil:
		return need(verify.TUFDocument, "targets/trusted_root.json")
	}
	a.TrustedRoot = &verify.TrustedRootFacts{Digest: digest.Of(r.Document)}
	return a, nil
}

// TestTrustedRootUpdate holds what an update writes, what it goes on from, and that nothing
// changes where something is refused.
func TestTrustedRootUpdate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "trusted_root.json")
	f := &fakeTUF{document: "one", roots: 2}
	u := TrustedRootUpdate{Path: path, URL: "https://tuf.example/", TUFRoot: []byte("first")}
	done, err := u.Update(t.Context(), f, f)
	if err != nil || done.Was != "" || done.RootVersion != 3 || done.URL != "https://tuf.example/" {
		t.Fatalf("%+v, %v", done, err)
	}
	if string(f.asked[0].Root) != "first" || f.fetched[0] != "https://tuf.example/2.root.json" {
		t.Errorf("began with %q and %s", f.asked[0].Root, f.fetched[0])
	}

	// The next one goes on from what was proved, at the same place, and tells it.
	again := &fakeTUF{document: "two", roots: 2}
	done, err = TrustedRootUpdate{Path: path}.Update(t.Context(), again, again)
	if err != nil || done.Was != digest.Of([]byte("one")) || again.fetched[0] != "https://tuf.example/4.root.json" {
		t.Fatalf("%+v, %v, %v", done, err, again.fetched)
	}
	if last := again.asked[len(again.asked)-1]; string(last.Kept.Timestamp) != "timestamp.json" || string(last.Kept.Snapshot) != "snapshot.json" {
		t.Errorf("kept is %+v", last.Kept)
	}
	// Another root to begin with is another repository: nothing is known of it.
	other := &fakeTUF{document: "two"}
	if _, err := (TrustedRootUpdate{Path: path, TUFRoot: []byte("1"), URL: "https://other.example"}).Update(t.Context(), other, other); err != nil {
		t.Fatal(err)
	}
	if last := other.asked[len(other.asked)-1]; last.Kept.Timestamp != nil || other.fetched[0] != "https://other.example/2.root.json" {
		t.Errorf("kept is %+v, fetched %v", last.Kept, other.fetched)
	}

	before := readBoth(t, path)
	for name, bad := range map[string]*fakeTUF{
		"silence":     {refuse: map[string]verify.Code{"timestamp.json": verify.CodeNetworkTimeout}},
		"too large":   {refuse: map[string]verify.Code{"targets.json": verify.CodeNetworkTooLarge}},
		"a gap":       {refuse: map[string]verify.Code{"snapshot.json": verify.CodeNetworkNotFound}},
		"root broken": {refuse: map[string]verify.Code{"2.root.json": verify.CodeNetworkStatus}},
	} {
		bad.document = "three"
		_, err := TrustedRootUpdate{Path: path}.Update(t.Context(), bad, bad)
		var refused *TrustedRootRefused
		if !errors.As(err, &refused) || refused.Refusal.Code == "" || refused.URL != "https://other.example/" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (TrustedRootUpdate{Path: path}).Update(t.Context(), &fakeTUF{}, &fakeTUF{endless: true}); err == nil {
		t.Error("a prover that never has enough is believed")
	}
	// Another update in between is not undone.
	racing := &fakeTUF{document: "three", during: func() { must(t, os.WriteFile(TUFStatePath(path), []byte(before[1]+" "), 0o600)) }}
	var busy *Busy
	if _, err := (TrustedRootUpdate{Path: path}).Update(t.Context(), racing, racing); !errors.As(err, &busy) {
		t.Errorf("an update in between: %v", err)
	}
	must(t, os.WriteFile(TUFStatePath(path), []byte(before[1]), 0o600))
	if after := readBoth(t, path); after != before {
		t.Errorf("%q became %q", before, after)
	}

	// What a person put there stays, unless it is what the update brings.
	must(t, os.WriteFile(path, []byte("mine"), 0o600))
	three := &fakeTUF{document: "three"}
	var foreign *ForeignTrustedRoot
	if _, err := (TrustedRootUpdate{Path: path}).Update(t.Context(), three, three); !errors.As(err, &foreign) {
		t.Errorf("a file of somebody's own: %v", err)
	}
	must(t, os.WriteFile(path, []byte("three"), 0o600))
	if done, err := (TrustedRootUpdate{Path: path}).Update(t.Context(), three, three); err != nil || done.Was != digest.Of([]byte("three")) {
		t.Errorf("%+v, %v", done, err)
	}
	for _, damaged := range []string{"", "{}", `{"format":2}`, `{"format":1,"url":"","root":"","timestamp":"","snapshot":"","document":""}`} {
		must(t, os.WriteFile(TUFStatePath(path), []byte(damaged), 0o600))
		var bad *DamagedTUFState
		if _, err := (TrustedRootUpdate{Path: path}).Update(t.Context(), three, three); !errors.As(err, &bad) {
			t.Errorf("%q: %v", damaged, err)
		}
	}
}

func readBoth(t *testing.T, path string) (out [2]string) {
	t.Helper()
	for i, at := range []string{path, TUFStatePath(path)} {
		text, err := os.ReadFile(at)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		out[i] = string(text)
	}
	return out
}
