package state

import (
	"fmt"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// An Install is what was found out about a package when it was put into the store.
// Its key is Package.
type Install struct {
	Package      digest.Digest
	Archive      digest.Digest // "" when installed from a directory
	Manifest     digest.Digest
	Fingerprint  digest.Digest
	ID           string
	Version      string
	Name         string
	Source       string // as the user gave it
	Platform     string // "os/arch", or "" when the source names none
	Executable   string // relative to the package, '/'-separated
	InstalledAt  time.Time
	Files        int
	Bytes        int64  // unpacked
	ManifestJSON []byte // plugin.json, byte for byte
}

// A Default says which package the directory plugins/<Dir> holds. Its key is Dir.
type Default struct {
	Dir     string
	ID      string
	Package digest.Digest
	Since   time.Time
}

// checkDigest refuses a key that is not a canonical digest.
func checkDigest(what string, d digest.Digest) error {
	if !digest.IsCanonical(string(d)) {
		return fmt.Errorf("%w: %s: %q is not a canonical digest", ErrRecord, what, string(d))
	}
	return nil
}

// PutInstall records a package.
func (tx *Tx) PutInstall(r Install) error {
	if err := checkDigest("install", r.Package); err != nil {
		return err
	}
	e := newEncoder(512 + len(r.ManifestJSON))
	e.digest(r.Package)
	e.digest(r.Archive)
	e.digest(r.Manifest)
	e.digest(r.Fingerprint)
	e.text(r.ID)
	e.text(r.Version)
	e.text(r.Name)
	e.text(r.Source)
	e.text(r.Platform)
	e.text(r.Executable)
	e.time(r.InstalledAt)
	e.int(int64(r.Files))
	e.int(r.Bytes)
	e.text(string(r.ManifestJSON))
	return tx.put(bucketInstalls, []byte(r.Package), e.b)
}

func decodeInstall(key, value []byte) (Install, error) {
	d := newDecoder(value)
	r := Install{
		Package: d.digest(), Archive: d.digest(), Manifest: d.digest(), Fingerprint: d.digest(),
		ID: d.text(), Version: d.text(), Name: d.text(), Source: d.text(), Platform: d.text(), Executable: d.text(),
		InstalledAt: d.time(), Files: int(d.int()), Bytes: d.int(), ManifestJSON: []byte(d.text()),
	}
	d.must(string(key) == string(r.Package) && digest.IsCanonical(string(key)))
	d.must(isDigests(r.Archive, r.Manifest, r.Fingerprint) && isTexts(r.ID, r.Version, r.Name))
	return r, d.err()
}

// Install returns the record of one package.
func (tx *Tx) Install(pkg digest.Digest) (Install, error) {
	return getRecord(tx, bucketInstalls, []byte(pkg), decodeInstall)
}

// Installs returns every installed package, sorted by package digest.
func (tx *Tx) Installs() ([]Install, error) {
	return listRecords(tx, bucketInstalls, nil, decodeInstall)
}

// RemoveInstall forgets a package. Its decisions and health stay: they belong to
// the digest and hold again when the same bytes come back.
func (tx *Tx) RemoveInstall(pkg digest.Digest) error {
	return tx.remove(bucketInstalls, []byte(pkg))
}

// SetDefault records what plugins/<r.Dir> holds.
func (tx *Tx) SetDefault(r Default) error {
	if err := checkDigest("default", r.Package); err != nil {
		return err
	}
	e := newEncoder(192)
	e.text(r.Dir)
	e.text(r.ID)
	e.digest(r.Package)
	e.time(r.Since)
	return tx.put(bucketDefaults, []byte(r.Dir), e.b)
}

func decodeDefault(key, value []byte) (Default, error) {
	d := newDecoder(value)
	r := Default{Dir: d.text(), ID: d.text(), Package: d.digest(), Since: d.time()}
	d.must(string(key) == r.Dir && digest.IsCanonical(string(r.Package)) && isTexts(r.ID))
	return r, d.err()
}

// Default returns the record of one directory name.
func (tx *Tx) Default(dir string) (Default, error) {
	return getRecord(tx, bucketDefaults, []byte(dir), decodeDefault)
}

// Defaults returns every default, sorted by directory name.
func (tx *Tx) Defaults() ([]Default, error) {
	return listRecords(tx, bucketDefaults, nil, decodeDefault)
}

// EachDefault calls fn with the directory name and the id of every default, sorted by
// directory name, and with no more of the records. One that cannot be read is left
// out.
func (tx *Tx) EachDefault(fn func(dir, id string) error) error {
	return tx.each(bucketDefaults, nil, func(_, v []byte) error {
		d := newDecoder(v)
		dir, id := d.text(), d.text()
		if d.bad {
			return nil
		}
		return fn(dir, id)
	})
}

// RemoveDefault forgets what plugins/<dir> held.
func (tx *Tx) RemoveDefault(dir string) error {
	return tx.remove(bucketDefaults, []byte(dir))
}

// getRecord reads and decodes one record.
func getRecord[T any](tx *Tx, id bucketID, key []byte, decode func(key, value []byte) (T, error)) (T, error) {
	v, err := tx.get(id, key)
	if err != nil {
		var zero T
		return zero, err
	}
	r, err := decode(key, v)
	if err != nil {
		var zero T
		return zero, tx.damaged(id, key, err)
	}
	return r, nil
}

// listRecords reads and decodes the records whose key begins with prefix.
func listRecords[T any](tx *Tx, id bucketID, prefix []byte, decode func(key, value []byte) (T, error)) ([]T, error) {
	// Room for most listings at once: what is not used of fresh memory costs
	// nothing, growing would touch it several times over.
	list := make([]T, 0, 128)
	err := tx.each(id, prefix, func(k, v []byte) error {
		r, err := decode(k, v)
		if err != nil {
			return tx.damaged(id, k, err)
		}
		list = append(list, r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}
