package commands

import (
	"bytes"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/commands/render"
)

func TestListFitsTheTerminal(t *testing.T) {
	list := []packageData{
		{ID: "repo-facts", Version: "1.0.0", Status: "enabled", Default: true,
			GrantedScopes: []string{"project.files.read", "project.metadata.read", "project.operate"}, Locked: true},
		{ID: "broken", Status: "broken", Default: true, Error: "/home/somebody/.local/share/switchyard/plugins/broken: plugin.json: \x1b]0;owned\a unexpected end of input"},
		{ID: "revoked-plugin", Version: "2.0.0-rc.1+build.20240229", Status: "revoked", Revocation: &denialData{Subject: "x", Reason: strings.Repeat("very ", 30) + "bad\u202e"}},
	}
	widest := func(width int) (int, string) {
		var out bytes.Buffer
		(&page{out: &out, width: width}).packages(list)
		n := 0
		for _, l := range strings.Split(out.String(), "\n") {
			n = max(n, render.Width(l))
		}
		return n, out.String()
	}
	if n, text := widest(80); n > 80 {
		t.Errorf("%d columns at 80:\n%s", n, text)
	}
	if n, text := widest(200); n > 200 || n <= 80 {
		t.Errorf("%d columns at 200:\n%s", n, text)
	}
	n, text := widest(0)
	if n <= 200 || strings.Contains(text, "…") {
		t.Errorf("without a terminal something was cut at %d columns:\n%s", n, text)
	}
	if strings.ContainsAny(text, "\x1b\a\u202e") {
		t.Errorf("foreign characters got through: %q", text)
	}
}
