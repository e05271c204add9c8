package commands

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/verify/policy"
)

type explainData struct {
	ID      string     `json:"id" doc:"The plugin's id."`
	Version string     `json:"version" doc:"The package's version."`
	Verdict string     `json:"verdict" doc:"What all rules say together: signed by publishers whom the policy names, reviewed by its digest, or refused." enum:"signed|reviewed|refused"`
	Rules   []ruleData `json:"rules" doc:"Every rule, always in the same order."`
}

func policyExplainCommand(in *invocation) *cli.Command {
	return &cli.Command{
		ArgsUsage: "NAME[@VERSION]|ARCHIVE",
		Description: "Says rule by rule what your policy asks of a package, what there is, and why that passes or not. Bundles are proved for " +
			"that, nothing is changed, and a refused package is no failure of this command.",
		UsageText: "switchyard policy explain repo-facts\nswitchyard policy explain ./repo-facts-1.0.0.tar.zst --json",
		Action: func(c *cli.Context) error {
			subject, err := in.oneArgument(c)
			if err != nil {
				return err
			}
			r, err := in.review(subject)
			if err != nil {
				return err
			}
			if r.Unjudged != nil {
				return r.Unjudged
			}
			report := r.Policy
			data := explainData{report.ID, report.Version, string(report.Verdict), newRuleData(report.Results)}
			in.show(data, func(p *page) { p.explained(data) })
			return nil
		},
	}
}

func (p *page) explained(d explainData) {
	p.line("%s %s  %s", p.style.Mark(render.Strong, d.ID), d.Version, p.style.Mark(verdictMark(d.Verdict), d.Verdict))
	for _, r := range d.Rules {
		p.line("")
		p.line("%s  %s", p.style.Mark(render.Strong, r.Rule), p.style.Mark(outcomeMark(r.Outcome), strings.ReplaceAll(r.Outcome, "_", " ")))
		p.prose(2, r.Why)
		if r.Want != "" {
			p.field("wanted", "%s", r.Want)
		}
		if r.Found != "" {
			p.field("found", "%s", r.Found)
		}
	}
}

func verdictMark(verdict string) render.Mark {
	switch policy.Verdict(verdict) {
	case policy.Signed:
		return render.Good
	case policy.Reviewed:
		return render.Warn
	}
	return render.Bad
}

func outcomeMark(outcome string) render.Mark {
	switch policy.Outcome(outcome) {
	case policy.Passed:
		return render.Good
	case policy.Failed:
		return render.Bad
	case policy.Warned:
		return render.Warn
	}
	return render.Faint
}
