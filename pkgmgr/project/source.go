package project

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/switchyard-plugins/switchyard/lockfile"
)

// Errors of sources, for errors.Is.
var (
	// ErrOpen: a placeholder of the source has no value.
	ErrOpen = errors.New("placeholder without a value")
	// ErrElsewhere: a path cannot be written relative to the project.
	ErrElsewhere = errors.New("not reachable from the project by a relative path")
)

func checkSource(s string) error {
	if s == "" {
		return errors.New("must not be empty")
	}
	return lockfile.CheckSource(s)
}

// Expand fills a source's placeholders: {version} by version, {os} and {arch} by
// the halves of platform. A placeholder whose value is missing ("" or
// lockfile.Any) is ErrOpen. A version that would change the path's shape is
// refused. The result is a source that lockfile.CheckSource accepts.
func Expand(source, version, platform string) (string, error) {
	if err := checkSource(source); err != nil {
		return "", fmt.Errorf("source \"%s\" %w", source, err)
	}
	var goos, goarch string
	if platform != "" && platform != lockfile.Any {
		if err := lockfile.CheckPlatform(platform); err != nil {
			return "", err
		}
		goos, goarch, _ = strings.Cut(platform, "/")
	}
	for _, p := range []struct{ name, value string }{{"{version}", version}, {"{os}", goos}, {"{arch}", goarch}} {
		if strings.Contains(source, p.name) && p.value == "" {
			return "", fmt.Errorf("source \"%s\": %s: %w", source, p.name, ErrOpen)
		}
	}
	if strings.Contains(source, "{version}") && (strings.ContainsAny(version, `/\:{}?#&%`) || strings.Contains(version, "..")) {
		return "", fmt.Errorf("source \"%s\": version \"%s\" cannot stand in a path", source, version)
	}
	expanded := strings.NewReplacer("{version}", version, "{os}", goos, "{arch}", goarch).Replace(source)
	if err := lockfile.CheckSource(expanded); err != nil {
		return "", fmt.Errorf("source \"%s\" %w", expanded, err)
	}
	return expanded, nil
}

// RelativeSource writes a path of the file system as a source: relative to the
// project's root and with "/". The path is not opened. One that no relative path
// reaches (another drive) is ErrElsewhere; one that a source cannot spell is an
// error.
func (p *Project) RelativeSource(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	// The directory may be reached through links that the root has resolved.
	if dir, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
		abs = filepath.Join(dir, filepath.Base(abs))
	}
	rel, err := filepath.Rel(p.Root, abs)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, ErrElsewhere)
	}
	source := filepath.ToSlash(rel)
	if err := checkSource(source); err != nil {
		return "", fmt.Errorf("source \"%s\" %w", source, err)
	}
	return source, nil
}

// SourcePath is where an expanded source that is no URL stands in the file
// system.
func (p *Project) SourcePath(source string) string {
	return filepath.Join(p.Root, filepath.FromSlash(source))
}

func list(s []string) string { return strings.Join(s, " ") }

func orAny(version string) string {
	if version == "" {
		return "any version"
	}
	return version
}
