package pkgmgr

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/switchyard-plugins/switchyard/pkgmgr/project/versionrange"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/ijson"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
	"github.com/switchyard-plugins/switchyard/verify"
)

// Local denials live in revocations/local.json and not in the database, so that
// losing the database loses no denial. A tree in quarantine is a denial by
// itself, even when that file is lost too.
const (
	denialsFile    = "local.json"
	denialsVersion = 1
	maxDenialBytes = 16 << 20
)

type denialList struct {
	Version int      `json:"version"`
	Denials []Denial `json:"denials"`
}

// A subject is what a denial is compared with. Members that are not known are "".
type subject struct {
	ID          string        `json:"id,omitzero"`
	Version     string        `json:"version,omitzero"`
	Package     digest.Digest `json:"package,omitzero"`
	Archive     digest.Digest `json:"archive,omitzero"`
	Manifest    digest.Digest `json:"manifest,omitzero"`
	Fingerprint digest.Digest `json:"fingerprint,omitzero"`
	Publisher   string        `json:"publisher,omitzero"` // of a session package: who its manifest says made it
	recorded    []byte        // the manifest in which publisher looks where Publisher is ""
}

func subjectOf(rec state.Install) subject {
	return subject{ID: rec.ID, Version: rec.Version, Package: rec.Package, Archive: rec.Archive,
		Manifest: rec.Manifest, Fingerprint: rec.Fingerprint, recorded: rec.ManifestJSON}
}

// publisher returns Publisher, which only signed lists ask for.
func (s subject) publisher() string {
	if s.Publisher == "" && s.recorded != nil {
		return publisherIn(s.recorded)
	}
	return s.Publisher
}

// covers reports whether the denial covers s. A version that is not SemVer cannot
// be compared with a range and counts as inside it.
func (d Denial) covers(s subject) bool {
	if d.Digest != "" {
		return d.Digest == s.Package || d.Digest == s.Archive || d.Digest == s.Manifest || d.Digest == s.Fingerprint
	}
	return d.PluginID == s.ID && inRange(s.Version, d.Range)
}

// readDenials returns the local denials, sorted by subject. An unreadable list is
// an error, never an empty one.
func (h *Home) readDenials() ([]Denial, error) {
	path := h.join(revokedDir, denialsFile)
	raw, err := readOwn(path, maxDenialBytes+1)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var bad *Malformed
	if errors.As(err, &bad) {
		return nil, bad
	}
	if err != nil {
		return nil, fmt.Errorf("local revocations: %w", err)
	}
	var list denialList
	if err := ijson.Unmarshal(raw, &list); err != nil {
		return nil, &Malformed{Where: filepath.Dir(path), File: denialsFile, Err: err}
	}
	if list.Version != denialsVersion {
		return nil, &Malformed{Where: filepath.Dir(path), File: denialsFile,
			Err: fmt.Errorf("has version %d; this program knows %d", list.Version, denialsVersion)}
	}
	return list.Denials, nil
}

// Revocations returns the local denials, sorted by subject.
func (h *Home) Revocations() ([]Denial, error) { return h.readDenials() }

// writeDenials replaces the list durably and in one step. The caller holds the
// mutation lock.
func (h *Home) writeDenials(denials []Denial) error {
	if err := h.ensure(revokedDir); err != nil {
		return err
	}
	slices.SortFunc(denials, func(a, b Denial) int { return strings.Compare(a.Subject(), b.Subject()) })
	raw, err := json.Marshal(denialList{Version: denialsVersion, Denials: denials}, jsontext.WithIndent("  "))
	if err != nil {
		return fmt.Errorf("local revocations: %w", err)
	}
	if len(raw) > maxDenialBytes {
		return &Malformed{Where: h.join(revokedDir), File: denialsFile,
			Err: fmt.Errorf("would have %d bytes, at most %d", len(raw), maxDenialBytes)}
	}
	if err := ijson.Check(raw); err != nil {
		// A list that cannot be read back would stop every command.
		return fmt.Errorf("local revocations: a list of %d is more than can be read back; lift some of them, or revoke an id instead of many digests: %w",
			len(denials), err)
	}
	if err := step("denials"); err != nil {
		return h.cannotWrite("local revocations", err)
	}
	if err := replaceFile(h.join(revokedDir, denialsFile), append(raw, '\n')); err != nil {
		return h.cannotWrite("local revocations", err)
	}
	return nil
}

// checkDenied returns a *Revoked if a local denial, quarantine or a signed list covers
// s. offered vouch for its archive, beside those of whom evidence is kept.
func (h *Home) checkDenied(s subject, offered ...verify.Signer) error {
	if err := h.deniedHere(s); err != nil {
		return err
	}
	return h.checkListed(s, offered)
}

// deniedHere is checkDenied for what was decided on this machine.
func (h *Home) deniedHere(s subject) error {
	denials, err := h.readDenials()
	if err != nil {
		return err
	}
	if d := coveredBy(denials, s); d != nil {
		return &Revoked{ID: s.ID, Version: s.Version, Package: s.Package, Denial: *d}
	}
	if s.Package == "" {
		return nil
	}
	switch _, err := os.Lstat(h.quarantinePath(s.Package)); {
	case err == nil:
		return &Revoked{ID: s.ID, Version: s.Version, Package: s.Package, Denial: Denial{
			Digest: s.Package, Reason: inQuarantine}}
	case errors.Is(err, fs.ErrNotExist):
		return nil
	default:
		return fmt.Errorf("quarantine: %w", err)
	}
}

// NotRevoked returns a *Revoked if a denial, quarantine or a signed list covers the package,
// which need not be installed here.
func (h *Home) NotRevoked(in state.Install) error { return h.checkDenied(subjectOf(in)) }

// ParseDenial reads what `revoke` takes: a digest in either spelling, an id, or
// an id with "@" and a SemVer range.
func ParseDenial(arg, reason string) (Denial, error) {
	if strings.TrimSpace(reason) == "" {
		return Denial{}, errors.New("a revocation needs a reason")
	}
	if d, err := digest.Parse(arg); err == nil {
		return Denial{Digest: d, Reason: reason}, nil
	}
	id, rng, ranged := strings.Cut(arg, "@")
	if err := manifest.CheckID(id); err != nil {
		return Denial{}, fmt.Errorf("\"%s\" is neither a SHA-256 digest nor a plugin id: an id %w", arg, err)
	}
	if ranged {
		if _, err := versionrange.Parse(rng); err != nil {
			return Denial{}, fmt.Errorf("version range: %w", err)
		}
	}
	return Denial{PluginID: id, Range: rng, Reason: reason}, nil
}

// inRange reports whether version lies in the range; "" is every version. A range
// that cannot be read covers everything, so that a denial fails closed.
func inRange(version, rng string) bool {
	if rng == "" || version == "" {
		return true
	}
	r, err := versionrange.Parse(rng)
	return err != nil || r.Covers(version)
}
