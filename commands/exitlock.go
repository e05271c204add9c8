package commands

import (
	"errors"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/lockfile/textfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/project"
)

// classifyLock knows the lockfile and the project's other file.
func (in *invocation) classifyLock(err error, f *failure) bool {
	var (
		drift    *pkgmgr.Drift
		drifts   *pkgmgr.Drifts
		stale    *pkgmgr.Stale
		noSource *pkgmgr.NoSource
		open     *pkgmgr.OpenSource
		remote   *pkgmgr.RemoteSource
		faults   lockfile.Faults
	)
	switch {
	case errors.As(err, &drifts):
		f.exit, f.code, f.message = exitLock, "lock.drift", drifts.Lock+": "+count(len(drifts.Items), "difference")
		f.hint = in.next("lock")
		d := driftsDetails{Lock: drifts.Lock, Drifts: []driftDetails{}}
		for _, i := range drifts.Items {
			d.Drifts = append(d.Drifts, driftDetails{i.Lock, i.ID, i.What, i.Wanted, i.Found})
			f.more = append(f.more, i.Error())
		}
		f.details = d
	case errors.As(err, &stale):
		f.exit, f.code, f.hint = exitLock, "lock.stale", in.next("lock")
		if n := len(stale.Changes); n > 0 {
			f.message = stale.Lock + " is out of date: " + count(n, "difference")
		}
		f.details = mergeDetails{stale.Lock, newLockChanges(stale.Changes)}
		for _, c := range stale.Changes {
			f.more = append(f.more, c.String())
		}
	case errors.Is(err, pkgmgr.ErrNoLock):
		f.exit, f.code, f.hint = exitLock, "lock.missing", in.next("lock")
	case errors.As(err, &open):
		f.exit, f.code = exitLock, "lock.invalid"
		f.details = invalidDetails{Faults: []faultData{{File: open.Config, Message: open.Error()}}}
	case errors.Is(err, project.ErrNone):
		f.exit, f.code = exitNotFound, "not_found.project_files"
		f.hint = in.next("help", "install")
	case errors.As(err, &noSource):
		f.exit, f.code = exitNotFound, "not_found.archive"
		f.hint = in.next("help", "install")
		f.more = []string{"whoever pinned it has the archive; install it from there with --sha256 " + noSource.Archive.Hex()}
	case errors.As(err, &remote):
		f.code = "source.remote"
	case errors.As(err, &drift):
		f.exit, f.code = exitLock, "lock.drift"
		f.details = driftDetails{drift.Lock, drift.ID, drift.What, drift.Wanted, drift.Found}
		switch drift.What {
		case pkgmgr.DriftNotInstalled, pkgmgr.DriftArchive:
			f.hint = in.next("ci")
		case pkgmgr.DriftGrants:
			f.code, f.hint = "lock.entry", in.next("review", drift.ID)
		case pkgmgr.DriftNotLocked:
			if _, err := in.named(pkgmgr.Ref{ID: drift.ID}); errors.As(err, new(*pkgmgr.NotFound)) {
				f.details, f.hint = nil, ""
				f.message = err.Error()
				return in.classifyDecision(err, f)
			}
			f.hint = in.next("pin", in.subjectOr(drift.ID))
		case pkgmgr.DriftVersion:
			f.hint = in.next("pin", in.subjectOr(drift.ID))
			if ref, err := pkgmgr.ParseRef(in.subject); err == nil && in.grantsOf(ref, nil) == nil {
				f.hint = in.withName(drift.ID)
			}
		case pkgmgr.DriftPlatform:
			f.hint = in.next("lock", "--platform", pkgmgr.HostPlatform())
		}
	case errors.Is(err, lockfile.ErrConflict):
		f.exit, f.code, f.hint = exitLock, "lock.conflict", in.next("lock", "--merge")
		f.details = faultDetails(err)
		f.more = furtherFaults(err, f)
	case errors.As(err, &faults):
		f.exit, f.code, f.details = exitLock, "lock.invalid", faultDetails(err)
		f.more = furtherFaults(err, f)
	case errors.Is(err, lockfile.ErrNotLocked), errors.Is(err, lockfile.ErrPlatform):
		f.exit, f.code = exitLock, "lock.entry"
	case errors.Is(err, textfile.ErrForeign), errors.Is(err, textfile.ErrSymlink), errors.Is(err, textfile.ErrNotRegular):
		f.exit, f.code = exitPermission, "permission.project_file"
	default:
		return false
	}
	return true
}
