package tomlstrict

import (
	"errors"
	"strings"
	"testing"
)

// A table whose name is misspelt in case is what is reported, where it stands, and not
// the table that its mistake seems to define twice.
func TestMisspeltTablesComeFirst(t *testing.T) {
	for _, c := range []struct {
		name, text   string
		line, column int
		found, right string
	}{
		{"array first", "v = 1\n\n\n[[Plugin]]\nid = 1\n[plugin.platform.a]\nx = 1\n[[plugin]]\nid = 2\n[plugin.platform.a]\nx = 1\n", 4, 3, "Plugin", "plugin"},
		{"array second", "[[plugin]]\n[plugin.platform.a]\n[[ PLUGIN ]]\n[plugin.platform.a]\n", 3, 4, "PLUGIN", "plugin"},
		{"inner table", "[[plugin]]\n[Plugin.platform.a]\n[[plugin]]\n[Plugin.platform.a]\n", 2, 2, "Plugin", "plugin"},
		{"inner name", "[[plugin]]\n[plugin.platform.a]\n[plugin.Platform.b]\n[plugin.platform.a]\n", 3, 9, "Platform", "platform"},
		{"signer", "[[plugin]]\n[plugin.Signer]\n[plugin.signer]\n[plugin.signer]\n", 2, 9, "Signer", "signer"},
		{"floors", "[[revocations]]\n[[Revocations]]\n[revocations.x]\n[revocations.x]\n", 2, 3, "Revocations", "revocations"},
		{"plugins", "[plugins.a]\n[Plugins.b]\n[plugins.a]\n", 2, 2, "Plugins", "plugins"},
		{"id", "[plugins.Repo]\n[plugins.repo]\n[plugins.repo]\n", 1, 10, "Repo", "repo"},
		{"dotted", "[plugins]\nA.source = 1\na.source = 1\n[plugins.a]\n", 2, 1, "A", "a"},
	} {
		_, err := Parse("f", []byte(c.text), 1<<20)
		var e *SyntaxError
		if !errors.As(err, &e) || e.Line != c.line || e.Column != c.column ||
			!strings.Contains(e.Message, `"`+c.found+`"`) || !strings.Contains(e.Message, `write "`+c.right+`"`) {
			t.Errorf("%s: %v; want %d:%d with %q and %q", c.name, err, c.line, c.column, c.found, c.right)
		}
	}
	// Nothing is misspelt here: what is defined twice is told.
	for _, text := range []string{"[a]\n[a]\n", "[A]\n[A]\n", "[[a]]\n[a]\n", "B = 1\nb = 1\n[a]\n[a]\n"} {
		if _, err := Parse("f", []byte(text), 1<<20); err == nil || !strings.Contains(err.Error(), "already defined") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
