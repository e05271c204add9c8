package commands

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/switchyard-plugins/switchyard/sdk/scaffold"
)

// sdk says what a new project builds on: the checkout that was named, else the
// release that this program is, else the checkout that the program stands in.
// Exactly one of the results is set.
func (in *invocation) sdk(named string) (dir, release string, err error) {
	if named != "" {
		if dir, err = filepath.Abs(named); err != nil {
			return "", "", err
		}
		if !isCheckout(dir) {
			return "", "", in.usage("--sdk: %s is no checkout of %s", named, scaffold.SDKModule)
		}
		return dir, "", nil
	}
	if release, ok := releaseOf(thisVersion().Version); ok {
		return "", release, nil
	}
	for _, start := range in.likelyCheckouts() {
		for dir := start; ; dir = filepath.Dir(dir) {
			if isCheckout(dir) {
				return dir, "", nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return "", "", &usageError{
		message: "version " + thisVersion().Version + " of this program is no release whose SDK a project could require; name a checkout of its source",
		hint:    append(append([]string{}, in.env.Args...), "--sdk", "DIR"),
	}
}

// likelyCheckouts are the program's directory, links resolved, and the working
// directory.
func (in *invocation) likelyCheckouts() []string {
	var dirs []string
	if self, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(self); err == nil {
			dirs = append(dirs, filepath.Dir(real))
		}
	}
	if dir, err := in.env.Getwd(); err == nil {
		dirs = append(dirs, dir)
	}
	return dirs
}

// isCheckout reports whether dir holds this program's module with its SDK.
func isCheckout(dir string) bool {
	if info, err := os.Stat(filepath.Join(dir, "sdk", "plugin")); err != nil || !info.IsDir() {
		return false
	}
	const limit = 1 << 20
	text, err := readUpTo(filepath.Join(dir, "go.mod"), limit)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "module" {
			return words[1] == scaffold.SDKModule
		}
	}
	return false
}

// releaseOf returns the version as the Go tool knows it, if it names a release:
// MAJOR.MINOR.PATCH with an optional pre-release, and not what git describe or the
// Go tool make of a commit between two releases.
func releaseOf(v string) (string, bool) {
	if !strings.HasPrefix(v, "v") {
		v = "v" + v
	}
	const number = `(0|[1-9]\d*)`
	release := regexp.MustCompile(`^v` + number + `\.` + number + `\.` + number + `(-[0-9A-Za-z.-]+)?$`)
	between := regexp.MustCompile(`(-\d+-g[0-9a-f]{4,40}|-dirty|[-.]\d{14}-[0-9a-f]{12})$`)
	if v == "v0.0.0" || !release.MatchString(v) || between.MatchString(v) {
		return "", false
	}
	return v, true
}
