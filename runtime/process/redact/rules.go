package redact

import (
	"regexp"
	"strings"
	"sync"
)

// A rule recognises one kind of token by its shape.
type rule struct {
	name string
	// hints are lower-case; the pattern is tried only on lines whose lower-case
	// form contains one of them.
	hints []string
	// pattern matches the secret, or has a group that does. It must match when
	// only the first blindBytes of a longer secret are there.
	pattern pattern
	// accept, if set, has the last word on a match.
	accept func(secret string) bool
}

// A pattern is a regular expression that is compiled at its first use: most runs
// never need one.
type pattern struct {
	text     string
	once     sync.Once
	compiled *regexp.Regexp
}

func (p *pattern) get() *regexp.Regexp {
	p.once.Do(func() { p.compiled = regexp.MustCompile(p.text) })
	return p.compiled
}

// rules is the table of token shapes.
var rules = []rule{
	{name: "GitHub token", hints: []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"},
		pattern: pattern{text: `(?:gh[pousr]_|github_pat_)[A-Za-z0-9_]{16,}`}},
	{name: "GitLab token", hints: []string{"glpat-", "gloas-", "gldt-", "glrt-", "glrtr-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "glsoat-", "glffct-"},
		pattern: pattern{text: `gl(?:pat|oas|dt|rt|rtr|cbt|ptt|ft|imt|agent|soat|ffct)-[A-Za-z0-9_.=-]{16,}`}},
	{name: "Slack token", hints: []string{"xoxa", "xoxb", "xoxc", "xoxd", "xoxe", "xoxo", "xoxp", "xoxr", "xoxs", "xapp-"},
		pattern: pattern{text: `(?:xox[abcdeoprs](?:\.xox[a-z])?|xapp)-[A-Za-z0-9%/+=-]{8,}`}},
	{name: "Slack webhook", hints: []string{"hooks.slack.com/"},
		pattern: pattern{text: `hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/_-]{8,})`}},
	{name: "Discord webhook", hints: []string{"/api/webhooks/"},
		pattern: pattern{text: `/api/webhooks/([0-9]+/[A-Za-z0-9_-]{16,})`}},
	{name: "AWS access key id", hints: []string{"akia", "asia", "abia", "acca"},
		pattern: pattern{text: `(?:^|[^A-Za-z0-9])((?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16})(?:$|[^A-Za-z0-9])`}},
	{name: "AWS secret access key", hints: []string{"akia", "asia", "aws"},
		pattern: pattern{text: `(?:^|[^A-Za-z0-9/+=_-])([A-Za-z0-9/+]{40})(?:$|[^A-Za-z0-9/+=_-])`}, accept: mixed},
	{name: "Google API key", hints: []string{"aiza"},
		pattern: pattern{text: `AIza[A-Za-z0-9_-]{30,}`}},
	{name: "Google OAuth token", hints: []string{"ya29.", "gocspx-"},
		pattern: pattern{text: `(?:ya29\.|GOCSPX-)[A-Za-z0-9_.-]{16,}`}},
	{name: "npm token", hints: []string{"npm_"},
		pattern: pattern{text: `npm_[A-Za-z0-9]{30,}`}},
	{name: "PyPI token", hints: []string{"pypi-"},
		pattern: pattern{text: `pypi-[A-Za-z0-9_-]{32,}`}},
	{name: "Stripe key", hints: []string{"_live_", "_test_", "whsec_"},
		pattern: pattern{text: `(?:[prs]k_(?:live|test)_|whsec_)[A-Za-z0-9+/=]{10,}`}},
	{name: "JSON Web Token", hints: []string{"eyj"},
		pattern: pattern{text: `(?:^|[^A-Za-z0-9])(eyJ[A-Za-z0-9_-]{16,}(?:\.[A-Za-z0-9_-]*)*)`}},
	{name: "model provider key", hints: []string{"sk-"},
		pattern: pattern{text: `(?:^|[^A-Za-z0-9_-])(sk-[A-Za-z0-9_-]{20,})`}, accept: hasDigit},
	{name: "SendGrid key", hints: []string{"sg."},
		pattern: pattern{text: `(?:^|[^A-Za-z0-9])(SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]*)`}},
	{name: "DigitalOcean token", hints: []string{"_v1_"},
		pattern: pattern{text: `do[opr]_v1_[a-f0-9]{32,}`}},
	{name: "Hugging Face token", hints: []string{"hf_"},
		pattern: pattern{text: `(?:^|[^A-Za-z0-9_])(hf_[A-Za-z0-9]{30,})`}},
	{name: "Docker token", hints: []string{"dckr_pat_"},
		pattern: pattern{text: `dckr_pat_[A-Za-z0-9_-]{20,}`}},
	{name: "Vault token", hints: []string{"hvs.", "hvb.", "hvr."},
		pattern: pattern{text: `hv[sbr]\.[A-Za-z0-9_-]{20,}`}},
	{name: "Terraform Cloud token", hints: []string{".atlasv1."},
		pattern: pattern{text: `[A-Za-z0-9]{10,}\.atlasv1\.[A-Za-z0-9_=-]{16,}`}},
	{name: "Shopify token", hints: []string{"shpat_", "shpca_", "shppa_", "shpss_"},
		pattern: pattern{text: `shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32,}`}},
	{name: "age secret key", hints: []string{"age-secret-key-"},
		pattern: pattern{text: `(?i)AGE-SECRET-KEY-[A-Z0-9-]{16,}`}},
	{name: "bearer credentials", hints: []string{"bearer", "basic"},
		pattern: pattern{text: `(?i)(?:^|[^a-z0-9])(?:bearer|basic)[ \t]+([A-Za-z0-9._~+/=:-]{8,})`}, accept: credential},
	{name: "signed URL", hints: []string{"signature=", "sig="},
		pattern: pattern{text: `(?i)[?&;](?:sig|[a-z0-9-]*signature)=([^&\s"'<>]{8,})`}},
}

func appendTokens(found []span, line, lower string) []span {
	for i := range rules {
		r := &rules[i]
		if !r.hinted(lower) {
			continue
		}
		at := 0
		for at < len(line) {
			m := r.pattern.get().FindStringSubmatchIndex(line[at:])
			if m == nil {
				break
			}
			secret := m[len(m)-2:] // the group if there is one, else the whole
			if secret[0] < 0 {
				secret = m[:2]
			}
			start, end := at+secret[0], at+secret[1]
			if r.accept == nil || r.accept(line[start:end]) {
				found = append(found, span{start, end})
			}
			at = end
		}
	}
	return found
}

func (r *rule) hinted(lower string) bool {
	for _, hint := range r.hints {
		if strings.Contains(lower, hint) {
			return true
		}
	}
	return false
}

// mixed accepts a run that has upper case, lower case and a digit, as random
// base64 has and a hexadecimal digest has not.
func mixed(s string) bool {
	return hasDigit(s) &&
		strings.ContainsFunc(s, func(r rune) bool { return r >= 'a' && r <= 'z' }) &&
		strings.ContainsFunc(s, func(r rune) bool { return r >= 'A' && r <= 'Z' })
}

func hasDigit(s string) bool { return strings.ContainsAny(s, "0123456789") }

// credential tells "Bearer 4f1c…" from "bearer authentication".
func credential(s string) bool { return hasDigit(s) || len(s) >= 20 }
