package state

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// A FileStat is what the file system said about one file or directory when
// the package was last hashed. While all of it is the same, the digest is taken
// to be the same for display; never for a decision.
type FileStat struct {
	Path    string // relative to the package, '/'-separated
	Dev     uint64
	Ino     uint64
	Size    int64
	Mode    uint32
	MtimeNs int64
	CtimeNs int64
}

// A Seen remembers a package directory that was hashed, with what a listing
// shows. Its key is Dir.
type Seen struct {
	Dir         string // name under plugins/
	Package     digest.Digest
	Fingerprint digest.Digest
	ID          string
	Name        string
	Version     string
	Protocol    string
	Scopes      []manifest.Scope
	Stats       []FileStat
}

// PutSeen records a package directory.
func (tx *Tx) PutSeen(r Seen) error {
	if err := checkDigest("seen", r.Package); err != nil {
		return err
	}
	e := newEncoder(320 + 64*len(r.Stats))
	e.text(r.Dir)
	e.digest(r.Package)
	e.digest(r.Fingerprint)
	e.text(r.ID)
	e.text(r.Name)
	e.text(r.Version)
	e.text(r.Protocol)
	encodeTexts(e, r.Scopes)
	e.uint(uint64(len(r.Stats)))
	// Neighbours have much in common, so numbers are stored as differences.
	var last FileStat
	for _, s := range r.Stats {
		e.text(s.Path)
		e.int(int64(s.Dev - last.Dev))
		e.int(int64(s.Ino - last.Ino))
		e.int(s.Size)
		e.uint(uint64(s.Mode))
		e.int(s.MtimeNs - last.MtimeNs)
		e.int(s.CtimeNs - last.CtimeNs)
		last = s
	}
	if len(e.b) > maxValue {
		return fmt.Errorf("%w: seen: %s has %d bytes of file facts", ErrRecord, r.Dir, len(e.b))
	}
	return tx.put(bucketSeen, []byte(r.Dir), e.b)
}

func decodeSeen(key, value []byte) (Seen, error) {
	var r Seen
	d := newDecoder(value)
	d.seen(key, &r)
	return r, d.err()
}

// seen reads a record into r, whose slices it uses again.
func (d *decoder) seen(key []byte, r *Seen) {
	r.Dir, r.Package, r.Fingerprint = d.text(), d.digest(), d.digest()
	r.ID, r.Name, r.Version, r.Protocol = d.text(), d.text(), d.text(), d.text()
	r.Scopes = appendTexts(r.Scopes[:0], d)
	n := d.count(7)
	r.Stats = slices.Grow(r.Stats[:0], n)
	var last FileStat
	for range n {
		last = FileStat{
			Path: d.text(), Dev: last.Dev + uint64(d.int()), Ino: last.Ino + uint64(d.int()),
			Size: d.int(), Mode: uint32(d.uint()),
			MtimeNs: last.MtimeNs + d.int(), CtimeNs: last.CtimeNs + d.int(),
		}
		r.Stats = append(r.Stats, last)
	}
	d.must(string(key) == r.Dir && digest.IsCanonical(string(r.Package)) && isDigests(r.Fingerprint))
	d.must(isTexts(r.ID, r.Name, r.Version) && isScopes(r.Scopes))
}

// EachSeen calls fn for everything remembered, sorted by directory name. The record,
// its texts and its slices are the database's and end with fn.
func (tx *Tx) EachSeen(fn func(*Seen) error) error {
	var r Seen
	return tx.each(bucketSeen, nil, func(k, v []byte) error {
		d := decoder{s: unsafe.String(unsafe.SliceData(v), len(v))}
		d.seen(k, &r)
		if err := d.err(); err != nil {
			return tx.damaged(bucketSeen, k, err)
		}
		return fn(&r)
	})
}

// Seen returns what is remembered of one directory name.
func (tx *Tx) Seen(dir string) (Seen, error) {
	return getRecord(tx, bucketSeen, []byte(dir), decodeSeen)
}

// AllSeen returns everything remembered, sorted by directory name, in one scan.
func (tx *Tx) AllSeen() ([]Seen, error) {
	return listRecords(tx, bucketSeen, nil, decodeSeen)
}

// RemoveSeen forgets one directory name.
func (tx *Tx) RemoveSeen(dir string) error {
	return tx.remove(bucketSeen, []byte(dir))
}
