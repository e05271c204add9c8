package commands

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/lockfile/textfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/archive"
	"github.com/switchyard-plugins/switchyard/pkgmgr/project"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/runtime"
	"github.com/switchyard-plugins/switchyard/runtime/call"
	"github.com/switchyard-plugins/switchyard/runtime/process"
	"github.com/switchyard-plugins/switchyard/sdk/plugin"
	"github.com/switchyard-plugins/switchyard/sdk/scaffold"
)

// Exit codes; docs/exit-codes.md explains them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitIntegrity   = 4
	exitDecision    = 5
	exitRevoked     = 6
	exitEvidence    = 7
	exitLock        = 8
	exitPlugin      = 9
	exitPermission  = 10
	exitBusy        = 11
	exitPartial     = 12
	exitInterrupted = 130
)

// classify is the only place that turns an error into an exit code, a stable
// code, a hint and details. Where an error wraps several, the first case wins:
// revocation before integrity before decisions.
func (in *invocation) classify(err error) failure {
	f := failure{exit: exitFailed, code: "failed", message: err.Error()}
	for _, try := range []func(error, *failure) bool{
		in.classifyOwn, in.classifyWorker, in.classifyLists, in.classifyPolicy, in.classifyPackage, in.classifyCall, in.classifyDecision, in.classifyLock, in.classifyState,
	} {
		if try(err, &f) {
			break
		}
	}
	if in.author != "" {
		in.devHint(err, &f)
	}
	var verified *verifyFailure
	if errors.As(err, &verified) {
		f.details = verified.data
	}
	if f.message == err.Error() {
		f.lines = sentences(err)
	}
	return f
}

// classifyOwn knows the errors of this package.
func (in *invocation) classifyOwn(err error, f *failure) bool {
	var (
		usage  *usageError
		asking *unaskedError
		found  *findings
		merge  *mergeConflict
		dev    *devUnderLock
		exists *scaffold.Exists
		file   *fileExists
	)
	switch {
	case errors.As(err, &usage):
		in.globals.json = wantsJSON(in.env.Args)
		f.exit, f.code = exitUsage, "usage"
		if usage.hint != nil {
			f.hint = render.Command(append([]string{in.env.Program}, usage.hint...)...)
		}
		if usage.overview {
			f.before = in.overview
		}
	case errors.As(err, &asking):
		f.exit, f.code, f.hint = exitDecision, "decision.no_terminal", asking.instead
	case errors.As(err, &found):
		f.exit, f.code, f.hint, f.details = found.exit, found.code, found.hint, found.data
	case errors.As(err, &merge):
		f.exit, f.code, f.hint = exitLock, "lock.conflict", in.next("lock", "--merge", "--take", "ours")
		d := mergeDetails{merge.path, newLockChanges(merge.conflicts)}
		for i, c := range merge.conflicts {
			d.Changes[i].Text = sidesOf(c)
			f.more = append(f.more, sidesOf(c))
		}
		f.details = d
	case errors.As(err, &dev):
		f.exit, f.code = exitLock, "lock.refuses_dev"
	case errors.Is(err, errDeclined):
		f.exit, f.code = exitDecision, "decision.declined"
	case errors.As(err, &exists):
		f.code, f.details, f.hint = "file.exists", existsDetails{exists.Path}, in.next("help", "init")
	case errors.As(err, &file):
		f.code, f.details = "file.exists", existsDetails{file.path}
	default:
		return false
	}
	return true
}

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

// classifyCall knows what can happen to a running plugin, and interrupts.
func (in *invocation) classifyCall(err error, f *failure) bool {
	var (
		failed    *runtime.Failed
		start     *process.StartError
		unhealthy *runtime.Unhealthy
		stopped   *runtime.Stopped
		lost      *runtime.Unrecorded
	)
	defer func() { // beside a failed or stopped call, what could not be recorded is a second fact
		if f.code != "call.unrecorded" && errors.As(err, &lost) {
			f.more = append(f.more, lost.Error())
		}
	}()
	switch {
	case errors.As(err, &failed):
		f.exit, f.code, f.message = exitPlugin, string(failed.Fault.Code), failed.Error()
		f.hint = in.next("logs", failed.ID)
		if failed.Method == pkgmgr.MethodOperate && failed.Fault.RPC != nil && failed.Fault.RPC.Code == plugin.CodeBadParams {
			f.hint = in.actionsHint(failed.ID)
		}
		f.details = faultyDetails{failed.ID, failed.Version, string(failed.Method), failed.Fault.Field, failed.Fault.Expected, failed.Fault.Found,
			failed.Exit.String(), failed.Stderr}
		for _, l := range failed.Stderr {
			f.more = append(f.more, failed.ID+": "+l)
		}
	case errors.As(err, &start):
		f.exit, f.code, f.message = exitPlugin, "plugin.start_failed", start.Error()
	case errors.As(err, &unhealthy):
		f.exit, f.code, f.hint = exitPlugin, "plugin.unhealthy", in.next("logs", unhealthy.ID)
	case errors.As(err, &stopped):
		f.exit, f.code, f.message = exitInterrupted, "interrupted", stopped.Error()
		if stopped.Cause == context.Canceled {
			f.message = "the call of " + stopped.ID + " was ended: interrupted"
		}
		if errors.Is(err, pkgmgr.ErrCancelled) {
			f.code = "cancelled"
		}
		if stopped.Operation != "" {
			f.hint = in.next("operations", "show", stopped.Operation)
		}
		f.details = stoppedDetails{stopped.ID, stopped.Operation}
	case errors.As(err, &lost):
		f.code, f.message, f.hint = "call.unrecorded", lost.Error(), in.next("doctor")
		d := unrecordedDetails{ID: lost.ID, Call: lost.Call}
		var answer *unrecordedAnswer
		if errors.As(err, &answer) {
			d.Answer = answer.data
			if run, ok := answer.data.(runData); ok && run.Method == string(pkgmgr.MethodOperate) {
				f.hint = in.next("operations", "show", lost.Call)
			}
		}
		if cause := (failure{}); in.classifyState(lost.Err, &cause) && cause.hint != "" {
			f.hint = cause.hint
		}
		f.details = d
	case errors.Is(err, runtime.ErrRequest):
		f.exit, f.code, f.hint = exitUsage, "usage", in.next(helpOn(in.commandName())...)
	case errors.Is(err, call.ErrTooLarge), errors.Is(err, call.ErrInput):
		f.exit, f.code, f.hint = exitUsage, "input.invalid", in.next(helpOn(in.commandName())...)
	case errors.Is(err, errInterrupted):
		f.exit, f.code, f.message = exitInterrupted, "interrupted", err.Error()
	case errors.Is(err, context.Canceled) && in.interrupted():
		f.exit, f.code, f.message = exitInterrupted, "interrupted", errInterrupted.Error()
	default:
		return false
	}
	return true
}

// classifyDecision knows what waits for a person, and what a person has refused.
func (in *invocation) classifyDecision(err error, f *failure) bool {
	var (
		needs     *pkgmgr.NeedsDecision
		partial   *pkgmgr.PartialFingerprint
		downgrade *pkgmgr.Downgrade
		denied    *pkgmgr.Denied
		scope     *pkgmgr.NotRequested
		offered   *pkgmgr.NotOffered
		unoffered *pkgmgr.Unoffered
		required  *pkgmgr.ScopeRequired
		protocol  *pkgmgr.WrongProtocol
		missing   *pkgmgr.NotFound
		several   *pkgmgr.Ambiguous
		outcome   *pkgmgr.Outcome
		input     *pkgmgr.BadInput
		foreign   *pkgmgr.ForeignDirectory
	)
	switch {
	case errors.As(err, &needs):
		f.exit = exitDecision
		f.details = decisionDetails{needs.ID, needs.Version, needs.Package, string(needs.Status)}
		f.hint = in.decisionHint(needs)
		switch needs.Status {
		case pkgmgr.StatusTrusted:
			f.code = "decision.disabled"
		case pkgmgr.StatusChanged:
			f.code = "decision.changed"
		default:
			f.code = "decision.untrusted"
		}
	case errors.As(err, &partial):
		f.exit, f.code, f.hint = exitDecision, "decision.partial_fingerprint", in.next("review", in.subjectOr(partial.ID))
	case errors.As(err, &downgrade):
		f.exit, f.code = exitDecision, "decision.downgrade"
		f.hint = in.again("--allow-downgrade")
		f.details = downgradeDetails{downgrade.ID, downgrade.Installed, downgrade.Offered}
	case errors.As(err, &denied):
		f.exit = exitPermission
		f.details = deniedDetails{denied.ID, string(denied.Scope), denied.Project, denied.ByLock}
		switch {
		case denied.Project != "":
			f.code, f.hint = "permission.project", in.next("project", "trust", denied.Project)
			if root := in.meantRoot(denied.Project); root != "" && in.takesProject() {
				f.hint = in.again("--project", root)
				f.more = []string{"it lies in the project " + root + ": a project is called as a whole, and trusted without its children"}
			}
		case denied.ByLock != "":
			f.code, f.hint = "permission.lock", in.ceilingHint(denied)
		case denied.Scope != "":
			f.code, f.hint = "permission.scope", in.moreScopes(denied.ID, denied.Scope)
		default:
			f.code, f.hint = "permission.changed", in.next("show", denied.ID)
		}
	case errors.As(err, &unoffered):
		f.exit, f.code, f.hint = exitPermission, "permission.unoffered", in.next("review", in.subjectOr(unoffered.ID))
	case errors.As(err, &required):
		f.exit, f.code, f.hint = exitPermission, "permission.required", in.enableCommandLine(in.subjectOr(required.ID), required.Required)
	case errors.As(err, &protocol):
		f.exit, f.code, f.hint = exitUsage, "protocol.mismatch", in.next("show", in.subjectOr(protocol.ID))
	case errors.As(err, &scope):
		f.exit, f.code, f.hint = exitUsage, "scope.not_requested", in.next("review", in.subjectOr(scope.ID))
		requested := make([]string, len(scope.Requested))
		for i, s := range scope.Requested {
			requested[i] = string(s)
		}
		f.details = scopeDetails{scope.ID, scope.Scope, requested}
	case errors.As(err, &offered):
		f.exit, f.code, f.hint = exitNotFound, "not_found.capability", in.next("show", offered.ID)
	case errors.As(err, &missing):
		f.exit, f.code = exitNotFound, "not_found."+strings.ReplaceAll(missing.Kind, " ", "_")
		f.hint = in.missingHint(missing)
		f.details = notFoundDetails{missing.Kind, missing.Name, missing.Near}
	case errors.As(err, &several):
		f.exit, f.code = exitUsage, "ambiguous"
		f.details = ambiguousDetails{several.Ref, several.Candidates}
		if ref, e := pkgmgr.ParseRef(several.Ref); e == nil && len(several.Candidates) > 0 {
			f.hint = in.next("show", ref.ID)
		}
	case errors.As(err, &input):
		f.exit, f.code, f.hint = exitUsage, "usage", in.next(helpOn(in.commandName())...)
	case errors.As(err, &outcome):
		f.code, f.hint = "operation.ended", in.next("operations", "show", outcome.Operation)
		if outcome.Key == "" {
			f.message = "operation " + outcome.Operation + " is " + outcome.State + ": " + outcome.Reason
		}
		f.details = outcomeDetails{outcome.Operation, outcome.Key, outcome.State, outcome.Reason}
	case errors.As(err, &foreign):
		f.code = "directory.foreign"
		f.details = foreignDetails{foreign.Path, foreign.ID}
	default:
		return false
	}
	return true
}

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

// classifyState knows the data directory and its database.
func (in *invocation) classifyState(err error, f *failure) bool {
	var (
		busy       *pkgmgr.Busy
		superseded *pkgmgr.Superseded
		unsafe     *pkgmgr.UnsafeDirectory
		readOnly   *pkgmgr.ReadOnly
		key        *state.KeyError
	)
	switch {
	case errors.As(err, &busy):
		f.exit, f.code = exitBusy, "busy"
		if busy.Operation != "" {
			f.hint = in.next("operations", "show", busy.Operation)
		}
		f.details = busyDetails{busy.What, busy.Operation}
	case errors.As(err, &key):
		f.exit, f.code, f.hint = exitBusy, "busy", in.next("operations", "show", key.ID)
		f.details = busyDetails{"idempotency key " + key.Key, key.ID}
	case errors.Is(err, state.ErrBusy):
		f.exit, f.code = exitBusy, "busy"
	case errors.As(err, &superseded):
		f.exit, f.code, f.hint = exitBusy, "busy.replaced", in.again()
	case errors.As(err, &unsafe):
		f.exit, f.code, f.hint = exitPermission, "permission.data_dir", in.unsafeDirHint(unsafe.Path)
	case errors.As(err, &readOnly), errors.Is(err, state.ErrReadOnly):
		f.exit, f.code, f.hint = exitPermission, "permission.read_only", in.readOnlyHint()
	case errors.Is(err, state.ErrMissing):
		f.code, f.hint = "state.missing", in.next("doctor", "--repair")
	case errors.Is(err, state.ErrCorrupt):
		f.code, f.hint = "state.corrupt", in.next("doctor", "--repair")
	case errors.Is(err, state.ErrNewer), errors.Is(err, state.ErrOlder):
		f.code = "state.format"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		f.code, f.hint = "disk.full", in.next("gc")
	default:
		return false
	}
	return true
}
