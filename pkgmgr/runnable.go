package pkgmgr

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
)

// runnable refuses a session package that says that it does not run on this system or
// under this version of the program.
func (h *Home) runnable(m *Manifest, where string) error {
	if m.Session == nil {
		return nil
	}
	r := m.Session.Runtime
	var platforms []string
	for _, system := range r.OS {
		for _, arch := range r.Architectures {
			platforms = append(platforms, system.GOOS()+"/"+arch.GOARCH())
		}
	}
	if here := runtime.GOOS + "/" + runtime.GOARCH; !slices.Contains(platforms, here) {
		found := strings.Join(platforms, ", ")
		if found == "" {
			found = "no system"
		}
		return &WrongPlatform{Where: where, Want: here, Found: found}
	}
	lowest := sessionmanifest.Or(r.MinHostVersion, "")
	if wants, has := minor(lowest), minor(h.hostVersion); wants != nil && has != nil && slices.Compare(has, wants) < 0 {
		return &HostTooOld{Where: where, Wants: lowest, Has: h.hostVersion}
	}
	return nil
}

// minor reads the MAJOR.MINOR that a version begins with, after a "v"; nil if it
// begins otherwise, as that of a program built from no release does.
func minor(version string) []int {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(rest)
	}
	a, err := strconv.Atoi(major)
	b, berr := strconv.Atoi(rest[:end])
	if err != nil || berr != nil {
		return nil
	}
	return []int{a, b}
}

// HostTooOld says that a package needs a newer version of this program.
type HostTooOld struct{ Where, Wants, Has string }

func (e *HostTooOld) Error() string {
	return fmt.Sprintf("%s needs switchyard %s or newer, and this is %s", e.Where, e.Wants, e.Has)
}
