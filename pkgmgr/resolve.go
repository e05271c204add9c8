package pkgmgr

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr/project"
	"github.com/switchyard-plugins/switchyard/pkgmgr/project/versionrange"
)

// resolveVersion returns what {version} stands for in the source of a plugin that
// switchyard.toml asks for, or "" where the source does not depend on it: the exact
// version that is asked for, else the highest one in the range whose file stands there
// for platform. Pre-releases count only if the range names one. What the files hold
// is for the caller to compare.
func resolveVersion(p *project.Project, id string, w project.Wanted, platform string) (string, error) {
	if !project.HasVersion(w.Source) {
		return "", nil
	}
	r, err := versionrange.Parse(cmp.Or(w.Version, "*"))
	if err != nil {
		return "", err
	}
	if v, ok := r.Exact(); ok {
		return v, nil
	}
	if lockfile.IsURL(w.Source) {
		return "", &RemoteSource{Source: w.Source}
	}
	versions, err := p.Versions(w.Source, platform)
	switch {
	case errors.Is(err, project.ErrOpen):
		return "", &OpenSource{Config: p.ConfigPath(), ID: id, Source: w.Source}
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	slices.Reverse(versions)
	if i := slices.IndexFunc(versions, r.Contains); i >= 0 {
		return versions[i], nil
	}
	goos, goarch, _ := strings.Cut(platform, "/")
	e := &NoVersion{ID: id, Range: cmp.Or(w.Version, "*"), Found: versions,
		Path: p.SourcePath(strings.NewReplacer("{os}", goos, "{arch}", goarch).Replace(w.Source))}
	if e.More = max(len(versions)-foundVersions, 0); e.More > 0 {
		e.Found = versions[:foundVersions]
	}
	return "", e
}

// foundVersions is how many versions NoVersion names.
const foundVersions = 10

// NoVersion says that of the files that a source with {version} names none is of a
// version that is asked for.
type NoVersion struct {
	ID, Range string
	Path      string   // the source's, with {version} left in it
	Found     []string // the highest versions that are there
	More      int      // how many more there are
}

func (e *NoVersion) Error() string {
	found := "nothing of that name is there"
	if len(e.Found) > 0 {
		found = "there is " + strings.Join(e.Found, ", ")
	}
	if e.More > 0 {
		found += fmt.Sprintf(" and %d more", e.More)
	}
	return fmt.Sprintf("no version of %s at %s fits %s: %s", e.ID, e.Path, e.Range, found)
}

// Unwrap makes it a source that is not found.
func (e *NoVersion) Unwrap() error { return &NotFound{Kind: "source", Name: e.Path} }
