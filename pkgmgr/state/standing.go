package state

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// A Trust says that a person reviewed exactly this package.
type Trust struct {
	Package     digest.Digest
	Fingerprint digest.Digest
	ID          string
	Version     string
	At          time.Time
	Via         string // how the decision was made: "review", …
}

// An Enablement grants scopes to a trusted package.
type Enablement struct {
	Package digest.Digest
	Scopes  []manifest.Scope
	At      time.Time
}

// A BlockKind says why a package is blocked.
type BlockKind string

const (
	BlockUntrusted BlockKind = "untrusted" // the user took the trust back
	BlockDisabled  BlockKind = "disabled"  // the user took the grants back
	BlockChanged   BlockKind = "changed"   // the installed files are no longer the reviewed ones
)

func (k BlockKind) known() bool {
	return k == BlockUntrusted || k == BlockDisabled || k == BlockChanged
}

// A Block is a decision against a package that the approval of a lockfile does
// not override. A package has at most one of each kind.
type Block struct {
	Package digest.Digest
	Kind    BlockKind
	At      time.Time
	Detail  string
}

// A HealthStatus is what the last call of a package showed.
type HealthStatus string

const (
	HealthHealthy   HealthStatus = "healthy"
	HealthDegraded  HealthStatus = "degraded"
	HealthUnhealthy HealthStatus = "unhealthy"
)

// Health is the outcome of the last call of a package.
type Health struct {
	Package digest.Digest
	Status  HealthStatus
	Code    string // of the fault, or ""
	Message string
	At      time.Time
}

// A Standing is everything that is recorded for a package digest beside its
// install: nil and empty where nothing is.
type Standing struct {
	Package    digest.Digest
	Trust      *Trust
	Enablement *Enablement
	Blocks     []Block // sorted by kind
	Health     *Health
}

// Blocked returns the block of one kind, or nil.
func (s Standing) Blocked(kind BlockKind) *Block {
	for i := range s.Blocks {
		if s.Blocks[i].Kind == kind {
			return &s.Blocks[i]
		}
	}
	return nil
}

// The records of one package digest are neighbours, so that a run finds them
// all with one descent. Key: digest, '/', kind.
const (
	kindTrust  = "trust"
	kindEnable = "enable"
	kindHealth = "health"
	kindBlock  = "block." // and the BlockKind
)

func standingKey(pkg digest.Digest, kind string) []byte {
	key := make([]byte, 0, len(pkg)+1+len(kind))
	key = append(key, pkg...)
	key = append(key, '/')
	return append(key, kind...)
}

func (tx *Tx) putStanding(pkg digest.Digest, kind string, e *encoder) error {
	if err := checkDigest(kind, pkg); err != nil {
		return err
	}
	return tx.put(bucketStanding, standingKey(pkg, kind), e.b)
}

var errStandingKey = errors.New("the key names no known record")

// add decodes one record into s.
func (s *Standing) add(kind, value []byte) error {
	d := newDecoder(value)
	switch string(kind) {
	case kindTrust:
		s.Trust = &Trust{Package: s.Package, Fingerprint: d.digest(), ID: d.text(), Version: d.text(), At: d.time(), Via: d.text()}
		d.must(isDigests(s.Trust.Fingerprint) && isTexts(s.Trust.ID, s.Trust.Version))
	case kindEnable:
		s.Enablement = &Enablement{Package: s.Package, Scopes: decodeTexts[manifest.Scope](d), At: d.time()}
		d.must(isScopes(s.Enablement.Scopes))
	case kindHealth:
		s.Health = &Health{Package: s.Package, Status: HealthStatus(d.text()), Code: d.text(), Message: d.text(), At: d.time()}
	default:
		block, ok := bytes.CutPrefix(kind, []byte(kindBlock))
		if !ok || !BlockKind(block).known() {
			return errStandingKey
		}
		s.Blocks = append(s.Blocks, Block{Package: s.Package, Kind: BlockKind(block), At: d.time(), Detail: d.text()})
	}
	return d.err()
}

// Standing returns all decisions and the health of one package, in one descent.
func (tx *Tx) Standing(pkg digest.Digest) (Standing, error) {
	s := Standing{Package: pkg}
	prefix := standingKey(pkg, "")
	err := tx.each(bucketStanding, prefix, func(k, v []byte) error {
		if err := s.add(k[len(prefix):], v); err != nil {
			return tx.damaged(bucketStanding, k, err)
		}
		return nil
	})
	if err != nil {
		return Standing{}, err
	}
	return s, nil
}

// EachStanding calls fn for the standing of every package that has one, sorted by
// package digest, in one scan.
func (tx *Tx) EachStanding(fn func(Standing) error) error {
	var s Standing
	err := tx.each(bucketStanding, nil, func(k, v []byte) error {
		pkg, kind, ok := bytes.Cut(k, []byte{'/'})
		if !ok || !digest.IsCanonical(string(pkg)) {
			return tx.damaged(bucketStanding, k, errStandingKey)
		}
		if string(s.Package) != string(pkg) {
			if s.Package != "" {
				if err := fn(s); err != nil {
					return err
				}
			}
			s = Standing{Package: digest.Digest(pkg)}
		}
		if err := s.add(kind, v); err != nil {
			return tx.damaged(bucketStanding, k, err)
		}
		return nil
	})
	if err != nil || s.Package == "" {
		return err
	}
	return fn(s)
}

// Standings returns the standing of every package that has one.
func (tx *Tx) Standings() (map[digest.Digest]Standing, error) {
	all := map[digest.Digest]Standing{}
	err := tx.EachStanding(func(s Standing) error {
		all[s.Package] = s
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// PutTrust records the review of a package.
func (tx *Tx) PutTrust(r Trust) error {
	e := newEncoder(192)
	e.digest(r.Fingerprint)
	e.text(r.ID)
	e.text(r.Version)
	e.time(r.At)
	e.text(r.Via)
	return tx.putStanding(r.Package, kindTrust, e)
}

// RemoveTrust forgets the review of a package.
func (tx *Tx) RemoveTrust(pkg digest.Digest) error {
	return tx.remove(bucketStanding, standingKey(pkg, kindTrust))
}

// PutEnablement records the grants of a package, replacing earlier ones.
func (tx *Tx) PutEnablement(r Enablement) error {
	e := newEncoder(128)
	encodeTexts(e, r.Scopes)
	e.time(r.At)
	return tx.putStanding(r.Package, kindEnable, e)
}

// RemoveEnablement revokes the grants of a package.
func (tx *Tx) RemoveEnablement(pkg digest.Digest) error {
	return tx.remove(bucketStanding, standingKey(pkg, kindEnable))
}

// PutBlock records a decision against a package.
func (tx *Tx) PutBlock(r Block) error {
	if !r.Kind.known() {
		return fmt.Errorf("%w: block: unknown kind %q", ErrRecord, string(r.Kind))
	}
	e := newEncoder(128)
	e.time(r.At)
	e.text(r.Detail)
	return tx.putStanding(r.Package, kindBlock+string(r.Kind), e)
}

// RemoveBlock lifts the block of one kind.
func (tx *Tx) RemoveBlock(pkg digest.Digest, kind BlockKind) error {
	return tx.remove(bucketStanding, standingKey(pkg, kindBlock+string(kind)))
}

// PutHealth records the outcome of the last call of a package.
func (tx *Tx) PutHealth(r Health) error {
	e := newEncoder(128)
	e.text(string(r.Status))
	e.text(r.Code)
	e.text(r.Message)
	e.time(r.At)
	return tx.putStanding(r.Package, kindHealth, e)
}
