package plugin

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/switchyard-plugins/switchyard/schemas/manifest"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/internal/strict"
)

// ErrNoPackage is returned by PackageManifest when the running program does not
// stand in a package that names it.
var ErrNoPackage = errors.New("no " + ManifestFile + " in this directory or above names this program as its executable")

// ParseManifest reads a plugin.json strictly and validates it. A document that
// breaks rules of the manifest gives a *manifest.Invalid that lists them all.
func ParseManifest(document []byte) (Manifest, error) {
	var m Manifest
	if len(document) > manifest.MaxBytes {
		return m, fmt.Errorf("%s: %d bytes, more than %d", ManifestFile, len(document), manifest.MaxBytes)
	}
	if err := strict.Check(document); err != nil {
		return m, fmt.Errorf("%s: %w", ManifestFile, err)
	}
	if err := strict.Object(document,
		strict.Required("schemaVersion", strict.String(&m.SchemaVersion)),
		strict.Required("id", strict.String(&m.ID)),
		strict.Required("name", strict.String(&m.Name)),
		strict.Required("version", strict.String(&m.Version)),
		strict.Required("protocolVersion", strict.String(&m.ProtocolVersion)),
		strict.Required("executable", strict.String(&m.Executable)),
		strict.Required("arguments", strict.Strings(&m.Arguments)),
		strict.Required("capabilities", strict.Strings(&m.Capabilities)),
		strict.Required("requestedScopes", strict.Strings(&m.RequestedScopes)),
	); err != nil {
		return Manifest{}, fmt.Errorf("%s: %w", ManifestFile, err)
	}
	if err := m.Validate(); err != nil {
		return Manifest{}, err
	}
	return m, nil
}

// MustParseManifest is ParseManifest for a manifest that is embedded in the
// program; it panics on an error.
func MustParseManifest(document []byte) Manifest {
	m, err := ParseManifest(document)
	if err != nil {
		panic(err)
	}
	return m
}

// PackageManifest reads the plugin.json of the package that the running program
// stands in: the nearest one, from the program's directory upwards, whose
// executable is this program.
func PackageManifest() (Manifest, error) {
	self, err := os.Executable()
	if err != nil {
		return Manifest{}, err
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return Manifest{}, err
	}
	return packageManifest(self)
}

func packageManifest(self string) (Manifest, error) {
	info, err := os.Stat(self)
	if err != nil {
		return Manifest{}, err
	}
	for dir := filepath.Dir(self); ; dir = filepath.Dir(dir) {
		document, err := readBounded(filepath.Join(dir, ManifestFile))
		switch {
		case err == nil:
			m, err := ParseManifest(document)
			if err != nil {
				return Manifest{}, fmt.Errorf("%s: %w", dir, err)
			}
			named, err := os.Stat(filepath.Join(dir, filepath.FromSlash(m.Executable)))
			if err == nil && os.SameFile(info, named) {
				return m, nil
			}
		case !errors.Is(err, os.ErrNotExist):
			return Manifest{}, err
		}
		if dir == filepath.Dir(dir) {
			return Manifest{}, ErrNoPackage
		}
	}
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, manifest.MaxBytes+1))
}
