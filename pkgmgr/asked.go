package pkgmgr

import (
	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// Asked is the package that an archive is to hold: what somebody named or, where
// nobody did, what a lock says of the plugin that the archive's manifest names. An
// archive of the same publisher with another plugin, another version or for another
// platform is a failure, however well it is signed.
type Asked struct {
	ID, Version string // "" asks for none
	Platform    string // "os/arch"; "" asks for none, and is this machine's for a lock
	Lock        *Lock  // asked where ID is ""; nil for none
}

// check returns nil, or how an archive is not what was asked for: *WrongPackage,
// *WrongPlatform, *Integrity or *Drift.
func (a Asked) check(c *Contents, sum digest.Digest, where string) error {
	platform := a.Platform
	if a.ID == "" && a.Lock != nil {
		if entry, ok := a.Lock.File.Plugin(c.Manifest.ID); ok {
			if platform == "" {
				platform = HostPlatform()
			}
			locked, key, ok := entry.For(platform)
			if !ok {
				return &Drift{Lock: a.Lock.Path, ID: entry.ID, What: DriftPlatform, Found: platform}
			}
			if entry.Version != c.Manifest.Version {
				return &WrongPackage{Where: where, WantID: entry.ID, WantVersion: entry.Version, ID: c.Manifest.ID, Version: c.Manifest.Version}
			}
			if err := onPlatform(c, key, where); err != nil {
				return err
			}
			if locked.Archive != sum {
				return &Integrity{What: "archive digest", Expected: locked.Archive, Found: sum, Where: where, Causes: []string{
					"the archive was packed again, or by somebody else, under the version that " + a.Lock.Path + " names",
					"it was changed after it was locked",
				}}
			}
			e := Expectation{ID: entry.ID, Version: entry.Version, Package: locked.Package, Manifest: locked.Manifest, Fingerprint: locked.Fingerprint}
			return e.check(c, where)
		}
	}
	e := Expectation{ID: a.ID, Version: a.Version}
	if err := e.check(c, where); err != nil {
		return err
	}
	return onPlatform(c, platform, where)
}

// onPlatform refuses an executable for another platform; "" and lockfile.Any ask for
// none.
func onPlatform(c *Contents, platform, where string) error {
	found := c.Head.Platform
	if platform == "" || platform == lockfile.Any || found == lockfile.Any || found == platform {
		return nil
	}
	if found == "" {
		found = "an unknown platform"
	}
	return &WrongPlatform{Where: where, Want: platform, Found: found}
}
