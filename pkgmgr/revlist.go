package pkgmgr

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/switchyard-plugins/switchyard/pkgmgr/project/versionrange"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/ijson"
	"github.com/switchyard-plugins/switchyard/verify/revlist"
)

// The signed revocation lists of an issuer lie in revocations/<issuer>/: the list
// and the root that says who may sign it, each with the bundles that sign it, the
// list's index, what is known of the issuer's lists so far, and where they come from.
// What lies there was verified before it was put there.
const (
	RootFile      = "root.json"
	ListFile      = "list.json"
	BundlesSuffix = ".sigstore.jsonl" // beside a document: one Sigstore bundle a line
	seenFile      = "state.json"
	seenVersion   = 1
	maxSeenBytes  = 64 << 10
	maxIssuers    = 64

	rebuildPrefix = ".index-"
)

// seenLists is the content of seenFile: what State says of an issuer's lists. It is
// written last, so that a list that it names is there whole.
type seenLists struct {
	Format   int           `json:"format"`
	Floor    uint64        `json:"floor"`
	Digest   digest.Digest `json:"digest,omitzero"`
	IssuedAt time.Time     `json:"issuedAt,omitzero"`
}

// versionRanges reads the ranges of lists. What cannot be compared with a range
// counts as inside it.
func versionRanges(text string) (func(version string) bool, error) {
	r, err := versionrange.Parse(text)
	if err != nil {
		return nil, err
	}
	return func(version string) bool { return version == "" || r.Covers(version) }, nil
}

func (h *Home) issuerPath(issuer string, parts ...string) string {
	return h.join(append([]string{revokedDir, issuer}, parts...)...)
}

// reservedIssuer reports whether an issuer's directory would stand where a file of
// this program does.
func reservedIssuer(name string) bool {
	name = strings.TrimSuffix(name, ".new") // as replaceFile writes it
	return name == denialsFile || name == dissentsFile
}

// Issuers returns whose lists are followed here, sorted.
func (h *Home) Issuers() ([]string, error) { return h.issuers() }

func (h *Home) issuers() ([]string, error) {
	entries, err := os.ReadDir(h.join(revokedDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("revocation lists: %w", err)
	}
	var list []string
	for _, e := range entries {
		if e.IsDir() && !reservedIssuer(e.Name()) {
			list = append(list, e.Name())
		}
	}
	return list, nil
}

// A ListsDamaged says that what is kept of an issuer's lists cannot be believed.
// Nothing is taken for unrevoked meanwhile.
type ListsDamaged struct {
	Issuer, Path string
	Err          error
}

func (e *ListsDamaged) Error() string {
	return fmt.Sprintf("revocation list of %s: %s: %v", e.Issuer, e.Path, e.Err)
}

func (e *ListsDamaged) Unwrap() error { return e.Err }

func (h *Home) malformedList(issuer, file string, err error) error {
	return &ListsDamaged{Issuer: issuer, Path: h.issuerPath(issuer, file), Err: err}
}

// readListFile reads a small file that is kept of an issuer's lists. A missing one is
// fs.ErrNotExist, and what is no file of this program a damage.
func (h *Home) readListFile(issuer, name string, limit int64) ([]byte, error) {
	raw, err := readOwn(h.issuerPath(issuer, name), limit)
	var bad *Malformed
	switch {
	case errors.As(err, &bad):
		return nil, h.malformedList(issuer, name, bad.Err)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("revocation lists: %w", err)
	}
	return raw, err
}

// seen returns what is known of an issuer's lists. Its absence is a damage: an issuer
// appears here whole or not at all.
func (h *Home) seen(issuer string) (revlist.State, error) {
	s := revlist.State{Issuer: issuer}
	raw, err := h.readListFile(issuer, seenFile, maxSeenBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return s, h.malformedList(issuer, seenFile, errors.New("is missing"))
	}
	if err != nil {
		return s, err
	}
	var f seenLists
	if err := ijson.Unmarshal(raw, &f); err != nil {
		return s, h.malformedList(issuer, seenFile, err)
	}
	if f.Format != seenVersion {
		return s, h.malformedList(issuer, seenFile, fmt.Errorf("has format %d; this program knows %d", f.Format, seenVersion))
	}
	s.Floor, s.Digest, s.Issued = f.Floor, f.Digest, f.IssuedAt
	return s, nil
}

func encodeSeen(s revlist.State) ([]byte, error) {
	raw, err := json.Marshal(seenLists{Format: seenVersion, Floor: s.Floor, Digest: s.Digest, IssuedAt: s.Issued})
	return append(raw, '\n'), err
}

// An openList is the list of one issuer, ready to be asked.
type openList struct {
	issuer string
	seen   revlist.State
	index  *revlist.Index // nil: there is no list
}

// header returns the list's header, nil where there is no list.
func (l *openList) header() *revlist.Header {
	if l.index == nil {
		return nil
	}
	h := l.index.Header()
	return &h
}

// openLists are the lists of all issuers.
type openLists []*openList

func (l openLists) close() {
	for _, one := range l {
		if one.index != nil {
			one.index.Close()
		}
	}
}

// openLists opens every issuer's list, at a cost that does not depend on their
// lengths. A list that cannot be believed and not be mended is an error, never an
// empty one. The caller closes them.
func (h *Home) openLists() (openLists, error) {
	issuers, err := h.issuers()
	if err != nil {
		return nil, err
	}
	if len(issuers) > maxIssuers {
		return nil, fmt.Errorf("revocation lists: %d issuers, at most %d are followed", len(issuers), maxIssuers)
	}
	var lists openLists
	for _, issuer := range issuers {
		one, err := h.openList(issuer)
		if err != nil {
			lists.close()
			return nil, err
		}
		lists = append(lists, one)
	}
	return lists, nil
}

func (h *Home) openList(issuer string) (*openList, error) {
	seen, err := h.seen(issuer)
	if err != nil {
		return nil, err
	}
	l := &openList{issuer: issuer, seen: seen}
	x, err := revlist.Open(h.issuerPath(issuer, revlist.IndexName))
	switch {
	case err == nil && l.believes(x.Header()):
		l.index = x
		return l, nil
	case err == nil:
		// An older one than was adopted: its entries count, and what it does not name
		// is believed only of the list that was adopted.
		if l.index, err = h.rebuilt(l); err == nil {
			x.Close()
			return l, nil
		}
		if x.Header().Issuer != issuer {
			x.Close()
			return nil, h.malformedList(issuer, revlist.IndexName, fmt.Errorf("is of the issuer %s", x.Header().Issuer))
		}
		l.index = x
		return l, nil
	case errors.Is(err, fs.ErrNotExist) && !exists(h.issuerPath(issuer, ListFile)):
		return l, nil
	case errors.Is(err, revlist.ErrIndexDamaged), errors.Is(err, fs.ErrNotExist):
		l.index, err = h.rebuilt(l)
		return l, err
	}
	return nil, fmt.Errorf("revocation lists: %w", err)
}

// believes reports whether an index is that of the list that was adopted last, or of
// a newer one whose adoption was interrupted before it was noted.
func (l *openList) believes(head revlist.Header) bool {
	switch {
	case head.Issuer != l.issuer || head.IssuedAt.Before(l.seen.Issued):
		return false
	case l.seen.Digest == "":
		return true
	}
	return head.Digest == l.seen.Digest || head.Version > l.seen.Floor
}

// rebuilt makes the index anew from the list that was adopted and opens it. Where the
// data directory cannot be written it serves this command alone.
func (h *Home) rebuilt(l *openList) (*revlist.Index, error) {
	f, err := os.Open(h.issuerPath(l.issuer, ListFile))
	if err != nil {
		return nil, h.malformedList(l.issuer, revlist.IndexName, fmt.Errorf("cannot be built again: %w", err))
	}
	defer f.Close()
	dir, err := os.MkdirTemp(h.issuerPath(l.issuer), rebuildPrefix)
	stays := err == nil
	if !stays {
		if dir, err = os.MkdirTemp("", "switchyard-"); err != nil {
			return nil, fmt.Errorf("revocation lists: %w", err)
		}
	}
	defer os.RemoveAll(dir)
	head, err := indexList(dir, f)
	if err != nil {
		return nil, h.malformedList(l.issuer, ListFile, err)
	}
	if !l.believes(head) || l.seen.Digest != "" && head.Digest != l.seen.Digest {
		return nil, h.malformedList(l.issuer, ListFile, errors.New("is not the list that was adopted"))
	}
	x, err := revlist.Open(filepath.Join(dir, revlist.IndexName))
	if err != nil || !stays {
		return x, err
	}
	// An update may have put a newer index there meanwhile.
	if now, err := h.seen(l.issuer); err == nil && now == l.seen {
		_ = os.Rename(filepath.Join(dir, revlist.IndexName), h.issuerPath(l.issuer, revlist.IndexName))
	}
	return x, nil
}

// indexList writes the index of a list into dir.
func indexList(dir string, list io.ReadSeeker) (revlist.Header, error) {
	var head revlist.Header
	err := revlist.Build(dir, func(visit func(revlist.Entry) error) (revlist.Header, error) {
		if _, err := list.Seek(0, io.SeekStart); err != nil {
			return head, err
		}
		var err error
		head, err = revlist.Read(list, 0, versionRanges, visit)
		return head, err
	})
	return head, err
}

// root returns the root that is trusted for an issuer, and its digest; nil where
// none is.
func (h *Home) root(issuer string) (*revlist.Root, digest.Digest, error) {
	raw, err := h.readListFile(issuer, RootFile, revlist.MaxRootBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	root, err := parseRoot(raw)
	if err == nil && root.Issuer != issuer {
		err = fmt.Errorf("is of the issuer %s", root.Issuer)
	}
	if err != nil {
		return nil, "", h.malformedList(issuer, RootFile, err)
	}
	return root, digest.Of(raw), nil
}

func parseRoot(raw []byte) (*revlist.Root, error) {
	return revlist.ReadRoot(strings.NewReader(string(raw)))
}

// A FollowedList says how the list of one issuer stands here.
type FollowedList struct {
	Issuer     string
	List       *revlist.Header // nil: there is none
	Verdict    revlist.Verdict
	Root       *revlist.Root
	RootDigest digest.Digest
	Source     string // where it comes from; "": nobody remembers
}

// FollowedLists says how the list of every issuer stands, sorted by issuer.
func (h *Home) FollowedLists() ([]FollowedList, error) {
	lists, err := h.openLists()
	if err != nil {
		return nil, err
	}
	defer lists.close()
	out := make([]FollowedList, len(lists))
	for i, l := range lists {
		out[i] = FollowedList{Issuer: l.issuer, List: l.header(), Verdict: revlist.Judge(l.seen, l.header(), h.now())}
		root, sum, err := h.root(l.issuer)
		if err != nil {
			return nil, err
		}
		if root == nil {
			return nil, h.malformedList(l.issuer, RootFile, errors.New("is missing"))
		}
		out[i].Root, out[i].RootDigest = root, sum
		if out[i].Source, err = h.ListSource(l.issuer); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(out, func(a, b FollowedList) int { return strings.Compare(a.Issuer, b.Issuer) })
	return out, nil
}
