package pkgmgr

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/switchyard-plugins/switchyard/verify"
	"github.com/switchyard-plugins/switchyard/verify/policy"
)

// EnvConfigDir names the environment variable for the configuration directory.
const EnvConfigDir = "SWITCHYARD_CONFIG_DIR"

// The files of the configuration directory, beside policy.FileName.
const (
	trustedRootFile = "trusted_root.json" // takes the place of the one that is shipped
	keysDir         = "keys"              // *.pub: public keys that may have signed, PEM
	maxKeys         = 1000
	maxKeyBytes     = 64 << 10
)

// ConfigDir resolves the directory of what the user decides once and for all:
// SWITCHYARD_CONFIG_DIR, else the platform's own place. The result is absolute;
// nothing is created.
func ConfigDir(getenv func(string) string) (string, error) {
	chosen := getenv(EnvConfigDir)
	if chosen == "" {
		base, err := platformConfigHome(getenv)
		if err != nil {
			return "", err
		}
		chosen = filepath.Join(base, dirName)
	}
	abs, err := filepath.Abs(chosen)
	if err != nil {
		return "", fmt.Errorf("configuration directory \"%s\": %w", chosen, err)
	}
	return abs, nil
}

// ReadAssurance reads the user's policy, public keys and trusted root from the
// configuration directory. What is not there is the default: the policy that lets
// unsigned packages go by review, no key, the trusted root that is shipped. Start is
// left to the caller. A file that others could write, take away or put there is
// refused: without a rule of the policy everything would pass it.
func ReadAssurance(dir string) (*Assurance, error) {
	for _, way := range []string{policy.FileName, trustedRootFile, filepath.Join(keysDir, "any")} {
		if err := checkConfigWay(filepath.Join(dir, way)); err != nil {
			return nil, err
		}
	}
	a := &Assurance{Policy: policy.Default()}
	path := filepath.Join(dir, policy.FileName)
	switch text, err := readConfig(path, policy.MaxBytes); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		if a.Policy, err = policy.Parse(path, text); err != nil {
			return nil, err
		}
	}
	switch text, err := readConfig(filepath.Join(dir, trustedRootFile), verify.MaxTrustedRoot); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		a.TrustedRoot = text
	}
	names, err := readNames(filepath.Join(dir, keysDir))
	if err == nil && names == nil {
		err = leadsNowhere(filepath.Join(dir, keysDir))
	}
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, ".pub") })
	slices.Sort(names)
	if len(names) > maxKeys {
		return nil, fmt.Errorf("configuration: %s holds %d keys, at most %d are read", filepath.Join(dir, keysDir), len(names), maxKeys)
	}
	for _, name := range names {
		text, err := readConfig(filepath.Join(dir, keysDir, name), maxKeyBytes)
		if err != nil {
			return nil, err
		}
		a.Keys = append(a.Keys, string(text))
	}
	return a, nil
}

// An Exposed says that a configuration file could be changed by somebody else: it
// decides about nothing.
type Exposed struct {
	Path   string
	Reason string
}

func (e *Exposed) Error() string { return e.Path + " " + e.Reason }

// readConfig reads a configuration file that only the user can change.
func readConfig(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = cmp.Or(leadsNowhere(path), err)
	}
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, &Exposed{path, "is not a regular file"}
	}
	if reason := exposure(info); reason != "" {
		return nil, &Exposed{path, reason}
	}
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("configuration: %s has more than %d bytes", path, limit)
	}
	return text, nil
}

// leadsNowhere tells a link whose target is gone from nothing at all: the user meant
// something to be there.
func leadsNowhere(path string) error {
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("%s is a link that leads nowhere", path)
	}
	return nil
}

// checkConfigWay refuses a way to a configuration file on which somebody else could
// put another one, or take it away.
func checkConfigWay(path string) error {
	abs, err := filepath.Abs(path)
	if err == nil {
		err = checkUserWay(abs)
	}
	var unsafe *UnsafeDirectory
	switch {
	case errors.As(err, &unsafe):
		return &Exposed{unsafe.Path, unsafe.Reason}
	case err != nil:
		return fmt.Errorf("configuration: %w", err)
	}
	return nil
}
