package commands

import (
	"errors"
	"path/filepath"

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
		b := &block{title: "POLICY REFUSED", causes: []string{
			"the package was signed by somebody else, or changed after it was signed",
			"the publisher changed its key or identity: confirm that with the publisher, then change the policy",
		}}
		if failed[0].Rule == "sbom" || failed[0].Rule == "licence" {
			b.causes = []string{
				"the SBOM was written for other files, or files were changed after it was written",
				"whoever made the package states its licences, or its files, otherwise than the policy asks",
			}
		}
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

// policySubject is how to name again what the policy refused: as the user did, where
// that was a path, for an archive that was refused is not installed.
func (in *invocation) policySubject(id string) string {
	for _, a := range in.given {
		if isPath(a) {
			return dotted(a)
		}
	}
	return id
}
