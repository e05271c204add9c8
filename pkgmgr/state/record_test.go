package state

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state/boltfile"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// A countingReader counts reads of a file.
type countingReader struct {
	io.ReaderAt
	reads int
}

func (r *countingReader) ReadAt(b []byte, at int64) (int, error) {
	r.reads++
	return r.ReaderAt.ReadAt(b, at)
}

// TestRunReadsFewPages: what a run reads does not grow with what is installed,
// but for the depth of the trees.
func TestRunReadsFewPages(t *testing.T) {
	reads := map[int]int{}
	for _, n := range []int{10, 100, 2000} {
		d := open(t)
		fill(t, d, n)
		f, err := os.Open(d.Path())
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		r := &countingReader{ReaderAt: f}
		file, err := boltfile.Open(r, info.Size())
		if err != nil {
			t.Fatal(err)
		}
		tx := Tx{path: d.Path(), file: file}
		if err := d.checkFormat(&tx); err != nil {
			t.Fatal(err)
		}
		if err := runLookups(&tx, "plugin-005"); err != nil {
			t.Fatal(err)
		}
		reads[n] = r.reads
	}
	t.Logf("reads by number of packages: %v", reads)
	if reads[2000] > reads[10]+8 || reads[2000] > 24 {
		t.Errorf("reads by number of packages: %v", reads)
	}
}

// FuzzRecords: no bytes make a decoder panic or believe in more elements than there are
// bytes.
func FuzzRecords(f *testing.F) {
	d := open(f)
	fill(f, d, 1)
	seeds := 0
	err := d.Update(f.Context(), func(tx *Tx) error {
		approval := ProjectApproval{Root: "/p", Package: testDigest(1), Scopes: manifest.Scopes, At: noon}
		if err := tx.PutProjectApproval(approval); err != nil {
			return err
		}
		if err := tx.PutBlock(Block{Package: testDigest(0), Kind: BlockChanged, At: noon, Detail: "x"}); err != nil {
			return err
		}
		for _, id := range []bucketID{bucketInstalls, bucketDefaults, bucketStanding, bucketProjects, bucketApprovals, bucketSeen} {
			err := tx.each(id, nil, func(k, v []byte) error {
				f.Add(bytes.Clone(k), bytes.Clone(v))
				seeds++
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || seeds < 8 {
		f.Fatalf("%d seeds, %v", seeds, err)
	}
	f.Fuzz(func(t *testing.T, key, b []byte) {
		_, _ = decodeInstall(key, b)
		_, _ = decodeDefault(key, b)
		_, _ = decodeProjectTrust(key, b)
		if r, err := decodeProjectApproval(key, b); err == nil && len(r.Scopes) > len(b) {
			t.Errorf("%d scopes in %d bytes", len(r.Scopes), len(b))
		}
		if r, err := decodeSeen(key, b); err == nil && 7*len(r.Stats) > len(b) {
			t.Errorf("%d files in %d bytes", len(r.Stats), len(b))
		}
		for _, kind := range []string{kindTrust, kindEnable, kindHealth, kindBlock + "changed", "unknown"} {
			err := new(Standing).add([]byte(kind), b)
			if kind == "unknown" && err == nil {
				t.Error("an unknown kind was accepted")
			}
		}
	})
}
