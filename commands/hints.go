package commands

import (
	"slices"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// integrityHint is the command that looks at what is there.
func (in *invocation) integrityHint(e *pkgmgr.Integrity) string {
	if in.subject != "" {
		return in.next("review", in.subject)
	}
	if e.What == "archive digest" {
		return in.next("review", e.Where)
	}
	return in.next("verify")
}

// moreScopes is the command that grants a scope beside those that are granted:
// enable replaces what was granted before.
func (in *invocation) moreScopes(id string, scope manifest.Scope) string {
	scopes := []manifest.Scope{scope}
	if ref, err := pkgmgr.ParseRef(in.subjectOr(id)); err == nil {
		if infos, err := in.named(ref); err == nil {
			scopes = slices.Concat(infos[0].Granted, scopes)
		}
	}
	return in.enableCommandLine(in.subjectOr(id), scopes)
}

func (in *invocation) missingHint(e *pkgmgr.NotFound) string {
	switch e.Kind {
	case "plugin", "version":
		if len(e.Near) > 0 {
			return in.next("show", e.Near[0])
		}
		return in.next("list")
	case "operation":
		return in.next("operations", "list")
	case "project":
		return in.next("project", "list")
	case "revocation":
		if len(e.Near) > 0 {
			return in.next("unrevoke", e.Near[0])
		}
	}
	return ""
}

// again returns the command line as it was typed, with more flags.
func (in *invocation) again(more ...string) string {
	words := append([]string{in.env.Program}, in.env.Args...)
	if i := slices.Index(words, "--"); i >= 0 {
		return render.Command(slices.Concat(words[:i], more, words[i:])...)
	}
	return render.Command(append(words, more...)...)
}

// subjectOr returns the plugin as the user named it, else id.
func (in *invocation) subjectOr(id string) string {
	if in.subject != "" {
		return in.subject
	}
	return id
}
