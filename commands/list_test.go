package commands

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

func TestListFitsTheTerminal(t *testing.T) {
	list := []pkgmgr.Info{
		{ID: "repo-facts", Version: "1.0.0", Status: pkgmgr.StatusEnabled, Default: true, Locked: true, Granted: manifest.Scopes},
		{ID: "broken", Status: pkgmgr.StatusBroken, Default: true,
			Err: errors.New("/home/somebody/.local/share/switchyard/plugins/broken: plugin.json: \x1b]0;owned\a unexpected end of input")},
		{ID: "revoked-plugin", Version: "2.0.0-rc.1+build.20240229", Status: pkgmgr.StatusRevoked,
			Denial: &pkgmgr.Denial{PluginID: "x", Reason: strings.Repeat("very ", 30) + "bad\u202e"}},
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
