package project

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr/project/versionrange"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// MaxEntries bounds how many entries of a directory Versions looks at.
const MaxEntries = 10_000

// ErrCrowded: a directory has more entries than Versions looks at.
var ErrCrowded = errors.New("too many entries to look for versions in")

// HasVersion reports whether a source depends on the version.
func HasVersion(source string) bool { return strings.Contains(source, "{version}") }

// HasPlatform reports whether a source is another file for each platform.
func HasPlatform(source string) bool {
	return strings.Contains(source, "{os}") || strings.Contains(source, "{arch}")
}

// Versions returns the versions for which something stands where a source says, in
// rising order: those that make a name in the directory of its last element what the
// source spells, with {os} and {arch} filled by platform. Nothing is opened, and
// whether a package there is of that version is not known. A source whose {version}
// stands before the last element, or that is a URL, is ErrOpen; a missing directory is
// fs.ErrNotExist, one with more than MaxEntries entries ErrCrowded.
func (p *Project) Versions(source, platform string) ([]string, error) {
	// A version that any source takes, so that what is wrong otherwise shows.
	if _, err := Expand(source, "1", platform); err != nil {
		return nil, err
	}
	dir, last := path.Split(source)
	if lockfile.IsURL(source) || HasVersion(dir) {
		return nil, fmt.Errorf("source \"%s\": {version} before the last element of a path: %w", source, ErrOpen)
	}
	goos, goarch, _ := strings.Cut(platform, "/")
	fill := strings.NewReplacer("{os}", goos, "{arch}", goarch)
	at := p.SourcePath(fill.Replace(dir))
	names, err := entries(at)
	if err != nil {
		return nil, err
	}
	parts := strings.Split(fill.Replace(last), "{version}")
	var versions []string
	for _, name := range names {
		v, ok := versionIn(name, parts)
		if !ok || len(v) > manifest.MaxVersion {
			continue
		}
		if _, err := Expand(source, v, platform); err == nil {
			versions = append(versions, v)
		}
	}
	slices.SortFunc(versions, versionrange.Compare)
	return versions, nil
}

// entries returns the names in a directory, in no order.
func entries(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	var names []string
	for len(names) <= MaxEntries {
		more, err := d.Readdirnames(1000)
		names = append(names, more...)
		if len(more) == 0 {
			if !errors.Is(err, io.EOF) {
				return nil, err
			}
			return names, nil
		}
	}
	return nil, fmt.Errorf("%s: %w (at most %d)", dir, ErrCrowded, MaxEntries)
}

// versionIn returns the text that joins parts to name, if there is one.
func versionIn(name string, parts []string) (string, bool) {
	places, rest := len(parts)-1, len(name)
	for _, part := range parts {
		rest -= len(part)
	}
	if places == 0 || rest <= 0 || rest%places != 0 {
		return "", false
	}
	start := len(parts[0])
	v := name[start : start+rest/places]
	return v, strings.Join(parts, v) == name
}
