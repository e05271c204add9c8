//go:build unix

package pkgmgr

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify/revlist"
)

// follows puts the index of a list with n entries in its place.
func follows(t testing.TB, n int) *fleet {
	t.Helper()
	f := newFleet(t)
	dir := f.issuerPath(issuer)
	must(t, os.MkdirAll(dir, 0o700))
	head := revlist.Header{Issuer: issuer, Version: 1, IssuedAt: f.now, ExpiresAt: f.now.Add(24 * time.Hour), Entries: n, Bytes: 1, Digest: some(0)}
	must(t, revlist.Build(dir, func(visit func(revlist.Entry) error) (revlist.Header, error) {
		for i := range n {
			e := revlist.Entry{Kind: revlist.Package, Digest: digest.Digest(fmt.Sprintf("sha256:%064x", i)), Action: revlist.Block, Reason: revlist.Malicious}
			if err := visit(e); err != nil {
				return revlist.Header{}, err
			}
		}
		return head, nil
	}))
	raw, err := encodeSeen(revlist.State{Issuer: issuer}.Adopted(head))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, seenFile), raw, 0o600))
	return f
}

// What every decision costs: no list, an empty one, and one with a million entries.
func BenchmarkCheckDenied(b *testing.B) {
	s := subject{ID: "x", Version: "1.0.0", Package: some(1), Archive: some(2), Manifest: some(3), Fingerprint: some(4)}
	for _, n := range []int{-1, 0, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f := newFleet(b)
			if n >= 0 {
				f = follows(b, n)
			}
			for b.Loop() {
				must(b, f.checkDenied(s))
				must(b, f.listsAllowCall(nil))
			}
		})
	}
}

// A decision costs the same whatever the length of the list: less than a millisecond
// more with many entries than with none.
func TestLongListsCostNoMore(t *testing.T) {
	s := subject{ID: "x", Version: "1.0.0", Package: some(1), Archive: some(2), Manifest: some(3)}
	cost := func(n int) time.Duration {
		f := follows(t, n)
		least := time.Hour
		for range 50 {
			begin := time.Now()
			must(t, f.checkDenied(s))
			least = min(least, time.Since(begin))
		}
		f.denied(subject{Package: digest.Digest(fmt.Sprintf("sha256:%064x", max(n-1, 0)))}, n > 0)
		return least
	}
	if none, many := cost(0), cost(200_000); many > none+time.Millisecond {
		t.Errorf("%v with no entries, %v with many", none, many)
	}
}
