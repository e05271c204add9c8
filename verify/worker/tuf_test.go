package worker

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/sigstore/sigstore-go/pkg/tuf"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
	"github.com/switchyard-plugins/switchyard/verify/worker/sigstoretest"
)

// tufNow is when the tests of TUF metadata happen.
var tufNow = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// tufRepository is a repository that is in order.
func tufRepository(document []byte) sigstoretest.TUFRepository {
	return sigstoretest.TUFRepository{Seed: "a", Root: 1, Timestamp: 5, Snapshot: 4, Targets: 3,
		Expires: tufNow.Add(time.Hour), RootExpiry: tufNow.Add(24 * time.Hour), Document: document}
}

func tufFiles(t testing.TB, r sigstoretest.TUFRepository) map[string][]byte {
	t.Helper()
	files, err := r.Files()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// walkTUF asks as an update does, from the root in r on, and returns the last request too.
func walkTUF(files map[string][]byte, r verify.TUFRequest) (verify.TUFRequest, *verify.TUFAnswer, error) {
	begin := r
	begin.Now, begin.Kept = time.Time{}, verify.TUFMetadata{}
	answer, err := checkTUF(begin)
	if err != nil {
		return r, nil, err
	}
	for {
		next := files[verify.TUFRootPath(answer.RootVersion+1)]
		if next == nil {
			break
		}
		if answer, err = checkTUF(verify.TUFRequest{Root: r.Root, NextRoot: next, Now: r.Now}); err != nil {
			return r, nil, err
		}
		r.Root = answer.Root
	}
	for range 5 {
		answer, err := checkTUF(r)
		if err != nil || answer.TrustedRoot != nil {
			return r, answer, err
		}
		text, ok := files[answer.Need.Path]
		if !ok {
			return r, nil, errors.New("no " + answer.Need.Path)
		}
		if int64(len(text)) > answer.Need.Limit {
			return r, nil, refuse(verify.CodeNetworkTooLarge, "%s", answer.Need.Path)
		}
		switch answer.Need.Role {
		case verify.TUFTimestamp:
			r.Offered.Timestamp = text
		case verify.TUFSnapshot:
			r.Offered.Snapshot = text
		case verify.TUFTargets:
			r.Offered.Targets = text
		case verify.TUFDocument:
			r.Document = text
		}
	}
	return r, nil, errors.New("no end")
}

// TestTUF holds what a TUF repository proves, the first time and again: a rotated root, a
// repository without consistent snapshots, and other keys, which end the floor that the
// old ones signed.
func TestTUF(t *testing.T) {
	document := newAuthority(t).root
	first := tufRepository(document)
	request := verify.TUFRequest{Root: tufFiles(t, first)["1.root.json"], Now: tufNow}
	r, answer, err := walkTUF(tufFiles(t, first), request)
	if err != nil {
		t.Fatal(err)
	}
	f := answer.TrustedRoot
	if f.Digest != digest.Of(document) || answer.Version != 3 || answer.RootVersion != 1 || !answer.Expires.Equal(first.Expires) || len(f.Authorities) != 1 || len(f.Logs) != 1 {
		t.Errorf("proved %+v, %+v", answer, f)
	}
	kept := verify.TUFRequest{Root: r.Root, Kept: verify.TUFMetadata{Timestamp: r.Offered.Timestamp, Snapshot: r.Offered.Snapshot}, Now: tufNow}
	for name, change := range map[string]func(*sigstoretest.TUFRepository){
		"the same":            func(*sigstoretest.TUFRepository) {},
		"a newer timestamp":   func(r *sigstoretest.TUFRepository) { r.Timestamp++ },
		"newer":               func(r *sigstoretest.TUFRepository) { r.Timestamp++; r.Snapshot++; r.Targets++ },
		"newer roots":         func(r *sigstoretest.TUFRepository) { r.Timestamp++; r.Root = 4 },
		"without consistency": func(r *sigstoretest.TUFRepository) { r.Timestamp++; r.Root, r.Flat = 2, true },
		"other keys":          func(r *sigstoretest.TUFRepository) { r.Timestamp, r.Snapshot, r.Root, r.NewKeys = 1, 1, 2, true },
	} {
		later := first
		change(&later)
		last, answer, err := walkTUF(tufFiles(t, later), kept)
		if err != nil || answer.RootVersion != later.Root || answer.Version != later.Targets || !bytes.Equal(last.Document, document) {
			t.Errorf("%s: %+v, %v", name, answer, err)
		}
	}
}

// TestTUFRefused holds what no repository and no mirror can make of an update: older files,
// files out of time, signed by others, exchanged, cut, too large, or no trusted root at
// all.
func TestTUFRefused(t *testing.T) {
	document := newAuthority(t).root
	first := tufRepository(document)
	begin := tufFiles(t, first)["1.root.json"]
	r, _, err := walkTUF(tufFiles(t, first), verify.TUFRequest{Root: begin, Now: tufNow})
	if err != nil {
		t.Fatal(err)
	}
	kept := verify.TUFMetadata{Timestamp: r.Offered.Timestamp, Snapshot: r.Offered.Snapshot}
	type repository = sigstoretest.TUFRepository
	for name, c := range map[string]struct {
		change func(*repository)
		tamper func(files map[string][]byte)
		begin  []byte // nil: the first root
		code   verify.Code
	}{
		"an older timestamp":            {change: func(r *repository) { r.Timestamp-- }, code: verify.CodeTUFVersion},
		"an older snapshot":             {change: func(r *repository) { r.Timestamp++; r.Snapshot-- }, code: verify.CodeTUFVersion},
		"older targets":                 {change: func(r *repository) { r.Timestamp++; r.Snapshot++; r.Targets-- }, code: verify.CodeTUFVersion},
		"the same timestamp, otherwise": {change: func(r *repository) { r.Snapshot++ }, code: verify.CodeTUFVersion},
		"expired":                       {change: func(r *repository) { r.Timestamp++; r.Expires = tufNow.Add(-time.Second) }, code: verify.CodeTUFExpired},
		"the kept one, expired":         {change: func(r *repository) {}, code: verify.CodeTUFExpired},
		"a root that expired":           {change: func(r *repository) { r.Root, r.RootExpiry = 2, tufNow.Add(-time.Second) }, code: verify.CodeTUFExpired},
		"another repository":            {change: func(r *repository) { r.Seed = "b" }, code: verify.CodeTUFSignature},
		"another's next root":           {change: func(r *repository) { r.Seed, r.Root = "b", 2 }, code: verify.CodeTUFSignature},
		"no root to begin with":         {begin: []byte("{}"), code: verify.CodeTUFRoot},
		"a timestamp to begin with":     {begin: r.Offered.Timestamp, code: verify.CodeTUFRoot},
		"no trusted root":               {change: func(r *repository) { r.Timestamp++; r.Snapshot++; r.Targets++; r.Document = nil }, code: verify.CodeTUFTarget},
		"a target that is none":         {change: func(r *repository) { r.Timestamp++; r.Snapshot++; r.Targets++; r.Document = []byte("{}") }, code: verify.CodeRootMalformed},
		"one that proves nothing": {change: func(r *repository) {
			r.Timestamp++
			r.Snapshot++
			r.Targets++
			r.Document = []byte(`{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}`)
		}, code: verify.CodeRootMalformed},
		"a target that is too large": {change: func(r *repository) {
			r.Timestamp++
			r.Snapshot++
			r.Targets++
			r.Document = make([]byte, verify.MaxTrustedRoot+1)
		}, code: verify.CodeTUFTarget},
		"a changed target": {change: func(r *repository) { r.Timestamp++ }, tamper: func(files map[string][]byte) {
			for name, text := range files {
				if name[:7] == "targets" {
					files[name] = bytes.Replace(text, []byte("https"), []byte("httpz"), 1)
				}
			}
		}, code: verify.CodeTUFMismatch},
		"a changed timestamp": {change: func(r *repository) { r.Timestamp++ }, tamper: func(files map[string][]byte) {
			files["timestamp.json"] = bytes.Replace(files["timestamp.json"], []byte(`"version":6`), []byte(`"version":7`), 1)
		}, code: verify.CodeTUFSignature},
		"a cut timestamp": {change: func(r *repository) { r.Timestamp++ }, tamper: func(files map[string][]byte) {
			files["timestamp.json"] = files["timestamp.json"][:20]
		}, code: verify.CodeTUFMalformed},
		"an empty timestamp": {tamper: func(files map[string][]byte) { files["timestamp.json"] = []byte{} }, code: verify.CodeTUFMalformed},
		"a role that is null": {change: func(r *repository) { r.Root = 2 }, tamper: func(files map[string][]byte) {
			files["2.root.json"] = []byte(`{"signatures":[],"signed":{"_type":"root","expires":"2031-01-01T00:00:00Z","keys":{},"roles":{"root":null},"spec_version":"1.0.31","version":2}}`)
		}, code: verify.CodeTUFMalformed},
		"a member that occurs twice": {change: func(r *repository) { r.Timestamp++ }, tamper: func(files map[string][]byte) {
			files["timestamp.json"] = bytes.Replace(files["timestamp.json"], []byte(`"version":6`), []byte(`"version":9,"version":6`), 1)
		}, code: verify.CodeTUFMalformed},
		"a snapshot as timestamp": {tamper: func(files map[string][]byte) {
			files["timestamp.json"] = files["4.snapshot.json"]
		}, code: verify.CodeTUFMalformed},
		"a root that was left out": {change: func(r *repository) { r.Root = 3 }, tamper: func(files map[string][]byte) {
			files["2.root.json"] = files["3.root.json"]
		}, code: verify.CodeTUFSignature},
		"an old root as a new one": {change: func(r *repository) { r.Root = 2 }, tamper: func(files map[string][]byte) {
			files["2.root.json"] = files["1.root.json"]
		}, code: verify.CodeTUFVersion},
		"a timestamp that is too large": {tamper: func(files map[string][]byte) {
			files["timestamp.json"] = append(bytes.Repeat([]byte{' '}, verify.MaxTUFTimestamp), files["timestamp.json"]...)
		}, code: verify.CodeNetworkTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			now := first
			if c.change != nil {
				c.change(&now)
			}
			files := tufFiles(t, now)
			if c.tamper != nil {
				c.tamper(files)
			}
			request := verify.TUFRequest{Root: begin, Kept: kept, Now: tufNow}
			if c.begin != nil {
				request.Root = c.begin
			}
			if name == "the kept one, expired" {
				request.Now = first.Expires.Add(time.Second)
			}
			_, _, err := walkTUF(files, request)
			var refusal *verify.Refusal
			if !errors.As(err, &refusal) || refusal.Code != c.code {
				t.Errorf("error is %v, want %s", err, c.code)
			}
		})
	}
}

// TestShippedRoots holds that the roots that are shipped can be read, and that nobody else's
// repository is taken for Sigstore's.
func TestShippedRoots(t *testing.T) {
	f, err := describeRoot(nil)
	if err != nil || len(f.Authorities) == 0 || len(f.Logs) == 0 || len(f.CTLogs) == 0 || f.Digest != digest.Of(publicGood) {
		t.Errorf("the trusted root that is shipped: %+v, %v", f, err)
	}
	a, err := checkTUF(verify.TUFRequest{})
	if err != nil || a.RootVersion < 1 || !bytes.Equal(a.Root, tuf.DefaultRoot()) || a.Need == nil || a.Need.Role != verify.TUFTimestamp {
		t.Errorf("the TUF root that is shipped: %+v, %v", a, err)
	}
	files := tufFiles(t, tufRepository(newAuthority(t).root))
	_, err = checkTUF(verify.TUFRequest{NextRoot: files["1.root.json"], Now: tufNow})
	var refusal *verify.Refusal
	if !errors.As(err, &refusal) || refusal.Code != verify.CodeTUFSignature {
		t.Errorf("another root follows the one that is shipped: %v", err)
	}
}

// FuzzTUF holds that whatever stands in one file of a repository, nothing panics, and a
// trusted root is proved only if it is the one that was signed.
func FuzzTUF(f *testing.F) {
	document := newAuthority(f).root
	files := tufFiles(f, tufRepository(document))
	begin := files["1.root.json"]
	good, _, err := walkTUF(files, verify.TUFRequest{Root: begin, Now: tufNow})
	if err != nil {
		f.Fatal(err)
	}
	seeds := [][]byte{begin, good.Offered.Timestamp, good.Offered.Snapshot, good.Offered.Targets, document, []byte("{}"), []byte("null"), nil,
		[]byte(`{"signed":{"_type":"timestamp"},"signatures":[]}`), []byte(`{"signed":{"_type":"root","roles":{"root":null},"keys":{"a":null}},"signatures":[null]}`)}
	for _, seed := range seeds {
		for which := range byte(5) {
			f.Add(which, seed)
		}
	}
	f.Fuzz(func(t *testing.T, which byte, text []byte) {
		r := good
		switch which % 5 {
		case 0:
			r.Root = text
		case 1:
			r.Kept.Timestamp, r.Kept.Snapshot = text, text
		case 2:
			r.Offered.Timestamp = text
		case 3:
			r.Offered.Snapshot, r.Offered.Targets = text, text
		case 4:
			r.Document = text
		}
		answer, err := checkTUF(r)
		mustRefuse(t, err)
		if err == nil && answer.TrustedRoot != nil && answer.TrustedRoot.Digest != digest.Of(document) {
			t.Fatalf("proved %s", answer.TrustedRoot.Digest)
		}
		_, err = checkTUF(verify.TUFRequest{Root: begin, NextRoot: text, Now: tufNow})
		mustRefuse(t, err)
	})
}
