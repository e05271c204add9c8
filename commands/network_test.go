package commands

import (
	"errors"
	"slices"
	"testing"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
)

// What a project's source may not do is done by a person, who is told what to type; what
// went wrong with a connection is tried again.
func TestRefusedSources(t *testing.T) {
	in := newInvocation(newFakeEnv(t, "revocations", "update").Env)
	in.entry = find("revocations update")
	sum := digest.Of([]byte("root"))
	const at = "https://lists.example/"
	for _, c := range []struct {
		err        error
		exit       int
		code, hint string
	}{
		{&pkgmgr.ListRefused{Code: pkgmgr.CodeNotFollowed, Issuer: "a.example", Root: sum, Source: at}, exitEvidence, "list.not_followed",
			"switchyard revocations update " + at + " --trust-root " + string(sum)},
		{&pkgmgr.ListRefused{Code: pkgmgr.CodeNotFollowed, Issuer: "a.example", Source: at}, exitEvidence, "list.not_followed", "switchyard revocations list"},
		{&pkgmgr.ListRefused{Code: pkgmgr.CodeNoSource, Issuer: "a.example"}, exitEvidence, "list.no_source",
			"switchyard revocations update SOURCE  # SOURCE is the directory or https address at which a.example publishes its lists; the issuer tells it"},
		{&pkgmgr.FetchRefused{URL: at, Project: true, Refusal: &verify.Refusal{Code: verify.CodeNetworkAddress}}, exitPermission, "network.address",
			"switchyard revocations update " + at},
		{&pkgmgr.FetchRefused{URL: at, Refusal: &verify.Refusal{Code: verify.CodeNetworkTimeout}}, exitFailed, "network.timeout", "switchyard revocations update"},
		{&pkgmgr.FetchRefused{URL: at, Refusal: &verify.Refusal{Code: verify.CodeNetworkTLS}}, exitFailed, "network.tls", "switchyard help revocations update"},
		{&pkgmgr.BadListURL{URL: "http://a", Err: errors.New("x")}, exitUsage, "usage", "switchyard help revocations update"},
	} {
		codes, err := errorCodes()
		if err != nil {
			t.Fatal(err)
		}
		f := in.classify(c.err)
		if f.exit != c.exit || f.code != c.code || f.hint != c.hint {
			t.Errorf("%v: %d %s %q", c.err, f.exit, f.code, f.hint)
		}
		if !slices.Contains(codes, f.code) {
			t.Errorf("%s is not in docs/exit-codes.md", f.code)
		}
	}
}
