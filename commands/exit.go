package commands

import (
	"errors"

	"github.com/switchyard-plugins/switchyard/commands/render"
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
		in.classifyOwn, in.classifyConformance, in.classifyTrustedRoot, in.classifyNetwork, in.classifyWorker, in.classifyLists, in.classifyPolicy, in.classifyPackage,
		in.classifyCall, in.classifyDecision, in.classifyLock, in.classifyState,
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
	var updates *updateFailure
	if errors.As(err, &updates) {
		f.details = updates.data
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
		other  *signedByOther
		place  *notAnArchive
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
		f.code, f.details, f.hint = "file.exists", existsDetails{file.path}, in.withOutput(file.instead)
	case errors.As(err, &other):
		f.code, f.details, f.hint = "file.exists", existsDetails{other.path}, in.withOutput(other.instead)
	case errors.As(err, &place) && place.directory:
		f.hint = in.next("pack", place.path)
	default:
		return false
	}
	return true
}
