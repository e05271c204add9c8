package commands

import (
	"errors"
	"slices"
	"strings"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

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
		f.exit, f.code, f.hint = exitPermission, "permission.required", in.enableCommandLine(in.subjectOr(required.ID), withChosen(required))
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

// withChosen are the scopes that a package cannot do without and, behind them, the others
// that somebody chose.
func withChosen(e *pkgmgr.ScopeRequired) []manifest.Scope {
	scopes := slices.Clone(e.Required)
	for _, s := range e.Chosen {
		if !slices.Contains(scopes, s) {
			scopes = append(scopes, s)
		}
	}
	return scopes
}
