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
		return "", fmt.Errorf("configuration directory %q: %w", chosen, err)
	}
	return abs, nil
}

// ReadAssurance reads the user's policy, public keys and trusted root from the
// configuration directory. What is not there is the default: the policy that lets
// unsigned packages go by review, no key, the trusted root that is shipped. Start is
// left to the caller. A file that others could write is refused.
func ReadAssurance(dir string) (*Assurance, error) {
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
