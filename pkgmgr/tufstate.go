package pkgmgr

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/go-json-experiment/json"

	"github.com/switchyard-plugins/switchyard/lockfile/textfile"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/ijson"
	"github.com/switchyard-plugins/switchyard/verify"
)

// tufStateSuffix is what the file with what is known of a repository adds to the name of
// the trusted root that came from there.
const tufStateSuffix = ".tuf"

const (
	tufStateFormat = 1
	maxTUFState    = 2 * (verify.MaxTUFRoot + verify.MaxTUFTimestamp + verify.MaxTUFSnapshot)
)

// tufState is what was proved of a TUF repository the last time.
type tufState struct {
	Format int    `json:"format"`
	URL    string `json:"url"`
	// Anchor is the digest of the root that the user began with, "" for the one that is
	// shipped.
	Anchor    digest.Digest `json:"anchor,omitzero"`
	Root      []byte        `json:"root"`
	Timestamp []byte        `json:"timestamp"`
	Snapshot  []byte        `json:"snapshot"`
	Document  digest.Digest `json:"document"` // the trusted root
}

// TUFStatePath is where it is kept what was proved of the repository that a trusted root
// came from.
func TUFStatePath(trustedRoot string) string { return trustedRoot + tufStateSuffix }

func (s *tufState) encode() ([]byte, error) {
	raw, err := json.Marshal(s)
	return append(raw, '\n'), err
}

// readTUFState returns what was proved the last time, and its text; nil where there was no
// last time. One that cannot be read is an error: without it an older root would be taken.
func readTUFState(trustedRoot string) (*tufState, []byte, error) {
	path := TUFStatePath(trustedRoot)
	raw, err := textfile.Read(path, maxTUFState)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	var s tufState
	err = ijson.Unmarshal(raw, &s)
	switch {
	case err == nil && s.Format != tufStateFormat:
		err = fmt.Errorf("has format %d; this program knows %d", s.Format, tufStateFormat)
	case err == nil && (len(s.Root) == 0 || len(s.Timestamp) == 0 || len(s.Snapshot) == 0):
		err = errors.New("lacks a part")
	case err == nil:
		return &s, raw, nil
	}
	return nil, nil, &DamagedTUFState{Path: path, Err: err}
}

// A DamagedTUFState says that what was proved of a repository cannot be read.
type DamagedTUFState struct {
	Path string
	Err  error
}

func (e *DamagedTUFState) Error() string { return filepath.Base(e.Path) + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *DamagedTUFState) Unwrap() error { return e.Err }

// CheckConfiguredRoot refuses a trusted root of the configuration directory, or what is
// known of its repository, that somebody else could change.
func CheckConfiguredRoot(configDir string) error {
	path := TrustedRootPath(configDir)
	for path, limit := range map[string]int64{path: verify.MaxTrustedRoot, TUFStatePath(path): maxTUFState} {
		if err := checkConfigWay(path); err != nil {
			return err
		}
		if _, err := readConfig(path, limit); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
