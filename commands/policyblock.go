package commands

import (
	"errors"
	"path/filepath"
	"slices"

	"github.com/switchyard-plugins/switchyard/lockfile/tomlstrict"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/verify/policy"
)

// ruleData is what one rule of the policy says about a package.
type ruleData struct {
	Rule    string `json:"rule" doc:"The rule."`
	Outcome string `json:"outcome" doc:"What it says." enum:"passed|failed|not_applicable|warned"`
	Code    string `json:"code" doc:"The code of a failed rule, else empty."`
	Why     string `json:"why" doc:"Why."`
	Want    string `json:"want" doc:"What the policy asks."`
	Found   string `json:"found" doc:"What there is."`
}

func newRuleData(list []policy.Result) []ruleData {
	out := make([]ruleData, len(list))
	for i, r := range list {
		out[i] = ruleData{r.Rule, string(r.Outcome), r.Code, r.Why, r.Want, r.Found}
	}
	return out
}

type policyDetails struct {
	ID      string     `json:"id" doc:"The plugin's id."`
	Version string     `json:"version" doc:"The package's version."`
	Rules   []ruleData `json:"rules" doc:"The rules that failed."`
}

// classifyPolicy knows what the policy refuses, and what is wrong with the policy.
func (in *invocation) classifyPolicy(err error, f *failure) bool {
	var (
		refusal *policy.Refusal
		differ  *pkgmgr.SignersDiffer
		exposed *pkgmgr.Exposed
		faults  tomlstrict.Faults
	)
	switch {
	case errors.As(err, &refusal):
		r := refusal.Report
		failed := r.Failed()
		f.exit, f.code = exitEvidence, failed[0].Code
		f.message = "the policy refuses " + r.ID + " " + r.Version
		f.details = policyDetails{r.ID, r.Version, newRuleData(failed)}
		b := &block{title: "POLICY REFUSED", causes: policyCauses(failed)}
		for _, one := range failed {
			b.facts = append(b.facts, [2]string{one.Rule, one.Why})
			if one.Want != "" {
				b.facts = append(b.facts, [2]string{"expected", one.Want})
			}
			if one.Found != "" {
				b.facts = append(b.facts, [2]string{"found", one.Found})
			}
		}
		f.block, f.hint = b, in.next("policy", "explain", in.policySubject(r.ID))
		if !slices.ContainsFunc(failed, func(r policy.Result) bool { return r.Rule != "lists" }) {
			f.hint = in.freshListsHint()
		}
	case errors.As(err, &differ):
		f.exit, f.code, f.hint = exitLock, "lock.signer", in.next("unpin", differ.ID)
	case errors.As(err, &exposed):
		f.exit, f.code, f.details = exitPermission, "permission.config", existsDetails{exposed.Path}
		f.hint = "chmod go-w " + exposed.Path
	case errors.As(err, &faults) && len(faults) > 0 && filepath.Base(faults[0].File) == policy.FileName:
		f.exit, f.code = exitUsage, "policy.invalid"
		f.hint = in.next("env")
	default:
		return false
	}
	return true
}

// policyCauses are the likely causes of what failed.
func policyCauses(failed []policy.Result) (causes []string) {
	for _, one := range failed {
		var more []string
		switch one.Rule {
		case "signature":
			more = []string{"nobody who counts here signed it: ask the publisher for the bundle that belongs beside the archive, or name the publisher in " + policy.FileName}
		case "threshold":
			more = []string{"a signature is missing: more than one publisher has to sign, each with a bundle of its own beside the archive"}
		case "provenance", "source":
			more = []string{"no provenance lies beside the archive, or it was built by another builder or from another source than the policy accepts"}
		case "sbom":
			more = []string{"there is no SBOM, it was written for other files, or files were changed after it was written"}
		case "licence":
			more = []string{"whoever made the package states its licences otherwise than the policy asks, or gave it no SBOM that states them"}
		case "cool-down":
			more = []string{"the package is newer than the policy accepts: wait, or ask why it has to be installed at once"}
		case "lists":
			more = []string{
				"newer lists were not fetched, or somebody withholds them from this machine",
				"the clock of this machine, or of the issuer, is wrong",
			}
		default:
			more = []string{
				"the package was signed by somebody else, or changed after it was signed",
				"the publisher changed its key or identity: confirm that with the publisher, then change the policy",
			}
		}
		for _, cause := range more {
			if !slices.Contains(causes, cause) {
				causes = append(causes, cause)
			}
		}
	}
	return causes
}

// policySubject is how to name again what the policy refused: as the user did, where
// that was a path, for an archive that was refused is not installed.
func (in *invocation) policySubject(id string) string {
	for _, a := range in.given {
		if isPath(a) || in.commandName() == "install" && isRegularOrDir(a) {
			return dotted(a)
		}
	}
	return id
}
