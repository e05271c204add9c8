package commands

import (
	"errors"
	"path/filepath"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/archive"
)

// classifyPackage knows what can be wrong with a package's bytes, and denials.
func (in *invocation) classifyPackage(err error, f *failure) bool {
	var (
		revoked   *pkgmgr.Revoked
		integrity *pkgmgr.Integrity
		refusal   *archive.Refusal
		malformed *pkgmgr.Malformed
		claimed   *pkgmgr.Claimed
		wrong     *pkgmgr.WrongPackage
		platform  *pkgmgr.WrongPlatform
		old       *pkgmgr.HostTooOld
		inside    *pkgmgr.InsidePackage
		sbom      *pkgmgr.SBOMDiffers
		untrue    *pkgmgr.SBOMRefused
	)
	switch {
	case errors.As(err, &revoked):
		f.exit, f.code, f.message = exitRevoked, "revoked", revoked.Error()
		if revoked.Denial.List != nil {
			in.listedFailure(revoked, f)
			break
		}
		f.hint = in.revokedHint(revoked)
		causes := []string{
			"you or an administrator of this machine revoked it; no trust, pin or lock overrides that",
			"lift the revocation only if its reason is known to be gone: " + in.next("unrevoke", revoked.Denial.Subject()),
		}
		f.details = revokedDetails{ID: revoked.ID, Version: revoked.Version, Package: revoked.Package, Denied: revoked.Denial.Subject(),
			Reason: revoked.Denial.Reason, Causes: causes}
		f.block = &block{
			title: "REVOKED",
			facts: [][2]string{
				{"package", revoked.ID + " " + revoked.Version},
				{"digest", string(revoked.Package)},
				{"denied", revoked.Denial.Subject()},
				{"reason", revoked.Denial.Reason},
			},
			causes: causes,
		}
	case errors.As(err, &integrity):
		f.exit, f.code, f.message = exitIntegrity, "integrity.digest", integrity.Error()
		f.hint = in.integrityHint(integrity)
		f.details = integrityDetails{integrity.What, integrity.Expected, integrity.Found, integrity.Where, integrity.Causes}
		found := string(integrity.Found)
		if found == "" {
			found = "(could not be computed: the files break a rule of packages)"
		}
		f.block = &block{
			title:  "INTEGRITY FAILURE",
			facts:  [][2]string{{"differs", integrity.What}, {"expected", string(integrity.Expected)}, {"found", found}, {"where", integrity.Where}},
			causes: integrity.Causes,
		}
	case errors.As(err, &refusal):
		f.exit, f.code, f.hint = exitIntegrity, "package.unsafe", in.refusedHint(refusal.Archive, "")
		f.block = unsafeBlock(refusal)
		f.details = unsafeDetails{refusal.Archive, refusal.Entry, string(refusal.Rule), refusal.Detail, f.block.causes}
	case errors.As(err, &malformed):
		f.exit, f.code, f.hint = exitIntegrity, "package.malformed", in.refusedHint(malformed.Where, malformed.File)
		if errors.As(err, new(*pkgmgr.StatedDigest)) && in.commandName() == "check" {
			f.hint = in.next("check", malformed.Where, "--write-digests")
		}
		d := in.newMalformedDetails(malformed)
		f.details, f.block = d, in.malformedBlock(malformed, d)
	case errors.As(err, &inside):
		f.exit, f.code = exitUsage, "usage"
		f.hint = in.next("pack", inside.Dir, "-o", filepath.Join(inside.Dir, "..", filepath.Base(inside.Path)))
	case errors.As(err, &sbom):
		f.exit, f.code, f.hint = exitEvidence, "sbom.differs", in.next("sbom", sbom.Dir)
	case errors.As(err, &untrue):
		f.exit, f.code, f.hint = exitEvidence, "policy.sbom", in.next("sbom", untrue.Source)
	case errors.Is(err, archive.ErrFormatName):
		f.exit, f.code, f.hint = exitUsage, "usage", in.next("help", "pack")
	case errors.As(err, &claimed):
		f.exit, f.code, f.hint = exitIntegrity, "package.claimed", in.claimedHint(claimed.ID)
		f.block = claimedBlock(claimed, claimedCauses)
		f.details = claimedDetails{claimed.ID, claimed.Dirs, claimedCauses}
	case errors.As(err, &wrong):
		f.exit, f.code, f.hint = exitIntegrity, "package.unexpected", in.next("review", wrong.Where)
		f.block = unexpectedBlock(wrong, unexpectedCauses)
		f.details = unexpectedDetails{wrong.Where, wrong.WantID, wrong.WantVersion, wrong.ID, wrong.Version, unexpectedCauses}
	case errors.As(err, &platform):
		f.exit, f.code, f.hint = exitIntegrity, "package.platform", in.platformHint(platform)
		f.block = platformBlock(platform, platformCauses)
		f.details = platformDetails{platform.Where, platform.Want, platform.Found, platformCauses}
	case errors.As(err, &old):
		f.exit, f.code, f.hint = exitIntegrity, "package.host_version", in.next("version")
		f.details = platformDetails{old.Where, old.Wants, old.Has, hostVersionCauses}
	default:
		return false
	}
	return true
}
