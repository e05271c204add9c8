package project

import (
	"errors"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/lockfile/tomlstrict/tomltest"
)

var (
	facts       = Wanted{Source: "dist/facts.zip", Version: "1.0.0", Scopes: []string{"project.metadata.read"}}
	unspecified = Wanted{Source: "dist/facts.zip"}
)

// edits: "+ID" adds or updates with facts, "~ID" with unspecified, "-ID" removes.
func edits() []struct{ name, edit, before, after string } {
	return []struct{ name, edit, before, after string }{
		{"new file", "+a", "", `version = 1

[plugins.a]
source = "dist/facts.zip"
version = "1.0.0"
scopes = ["project.metadata.read"]
`},
		{"only what is asked for", "~a.b", "version = 1\n", `version = 1

[plugins."a.b"]
source = "dist/facts.zip"
`},
		{"no line end at the end", "~b", "version = 1\n[plugins.a]\nsource = \"x\" # c", `version = 1
[plugins.a]
source = "x" # c

[plugins.b]
source = "dist/facts.zip"
`},
		{"after other tables", "~b", "version = 1\nplugins.a.source = 'x'\n\n# end\n", `version = 1
plugins.a.source = 'x'

# end

[plugins.b]
source = "dist/facts.zip"
`},
		{"beside a policy", "~b", "version = 1\n[policy.provenance]\nbuilder = ['*']\n", `version = 1
[policy.provenance]
builder = ['*']

[plugins.b]
source = "dist/facts.zip"
`},
		{"into an inline table", "~b", "version = 1\nplugins = { a = { source = 'x' } } # c\nplatforms = ['linux/386']\n",
			"version = 1\nplugins = { a = { source = 'x' }, b = { source = \"dist/facts.zip\" } } # c\nplatforms = ['linux/386']\n"},
		{"into an empty inline table", "~b", "version = 1\nplugins = { }\n",
			"version = 1\nplugins = { b = { source = \"dist/facts.zip\" } }\n"},
		{"into an inline table of dotted keys", "~b", "version = 1\nplugins = { a.source = 'x' }\n",
			"version = 1\nplugins = { a.source = 'x', b = { source = \"dist/facts.zip\" } }\n"},

		{"unchanged values keep their spelling", "+a", `version=1
[ plugins . 'a' ] # c
  scopes=[ # s
    'project.metadata.read',
  ]
  source   =   'dist/facts.zip'   # c
  version = '''1.0.0'''
`, `version=1
[ plugins . 'a' ] # c
  scopes=[ # s
    'project.metadata.read',
  ]
  source   =   'dist/facts.zip'   # c
  version = '''1.0.0'''
`},
		{"changed values in place", "+a", `version = 1

[plugins.a]
  source = 'x' # where
  # which
  version = "0.9" # old
  scopes = [
    "project.operate",
  ] # all

[plugins.b]
source = "x"
`, `version = 1

[plugins.a]
  source = "dist/facts.zip" # where
  # which
  version = "1.0.0" # old
  scopes = ["project.metadata.read"] # all

[plugins.b]
source = "x"
`},
		{"absent members follow the last", "+a", `version = 1
[plugins.a] # c
	source = "x" # where

# b
[plugins.b]
source = "x"
`, `version = 1
[plugins.a] # c
	source = "dist/facts.zip" # where
	version = "1.0.0"
	scopes = ["project.metadata.read"]

# b
[plugins.b]
source = "x"
`},
		{"absent members at the end of the file", "+a", "version = 1\n[plugins.a]\nsource = 'x'", `version = 1
[plugins.a]
source = "dist/facts.zip"
version = "1.0.0"
scopes = ["project.metadata.read"]`},
		{"open members go", "~a", "version = 1\n[plugins.a]\nscopes = []\nsource = 'x'\nversion = \"1\" # c\n# stays\n",
			"version = 1\n[plugins.a]\nsource = \"dist/facts.zip\"\n# stays\n"},
		{"an inline entry", "+a", "version = 1\n[plugins]\na = { source = 'x', scopes = [] } # c\nb = { source = 'x' }\n",
			"version = 1\n[plugins]\na = { source = \"dist/facts.zip\", scopes = [\"project.metadata.read\"], version = \"1.0.0\" } # c\nb = { source = 'x' }\n"},
		{"open members of an inline entry", "~a", "version = 1\nplugins = { a = { version = '1', scopes = [], source = 'x' }, b.source = 'x' }\n",
			"version = 1\nplugins = { a = { source = \"dist/facts.zip\" }, b.source = 'x' }\n"},
		{"dotted keys", "+a", "version = 1\nplugins.'a'.source = 'x' # c\nplugins.b.source = 'x'\n",
			"version = 1\nplugins.'a'.source = \"dist/facts.zip\" # c\nplugins.'a'.version = \"1.0.0\"\nplugins.'a'.scopes = [\"project.metadata.read\"]\nplugins.b.source = 'x'\n"},
		{"dotted keys in a table", "+a", "version = 1\n[plugins]\n  a.version = '2'\n  a.source = 'x'\n  b.source = 'x'\n",
			"version = 1\n[plugins]\n  a.version = \"1.0.0\"\n  a.source = \"dist/facts.zip\"\n  a.scopes = [\"project.metadata.read\"]\n  b.source = 'x'\n"},
		{"dotted keys in an inline table", "+a", "version = 1\nplugins = { a.source = 'x', b.source = 'x' }\n",
			"version = 1\nplugins = { a.source = \"dist/facts.zip\", a.version = \"1.0.0\", a.scopes = [\"project.metadata.read\"], b.source = 'x' }\n"},

		{"remove a table with its comment", "-b", `version = 1

[plugins.a]
source = "x"

# Apart.

# About b.
# More about b.
[plugins.b]
# inside
source = "x" # c

# Apart again.

[plugins.c]
source = "x"
`, `version = 1

[plugins.a]
source = "x"

# Apart.

# Apart again.

[plugins.c]
source = "x"
`},
		{"remove the last table", "-b", "version = 1\n\n[plugins.a]\nsource = 'x'\n\n\n[plugins.b]\nsource = 'x'\nscopes = [\n]\n\n",
			"version = 1\n\n[plugins.a]\nsource = 'x'\n"},
		{"remove the only plugin", "-a", "version = 1\n\n[plugins.a]\nsource = 'x'", "version = 1\n"},
		{"remove an inline entry", "-a", "version = 1\n[plugins]\n# c\na = { source = 'x' } # c\nb = { source = 'x' }\n",
			"version = 1\n[plugins]\n# c\nb = { source = 'x' }\n"},
		{"remove dotted keys", "-a", "version = 1\nplugins.a.source = 'x'\nplugins.b.source = 'x'\nplugins.a.scopes = [\n] # c\n# end\n",
			"version = 1\nplugins.b.source = 'x'\n# end\n"},
		{"remove the first of an inline table", "-a", "version = 1\nplugins = { a = { source = 'x' }, b = { source = 'x' } }\n",
			"version = 1\nplugins = { b = { source = 'x' } }\n"},
		{"remove the last of an inline table", "-b", "version = 1\nplugins = { a = { source = 'x' }, b = { source = 'x' } }\n",
			"version = 1\nplugins = { a = { source = 'x' } }\n"},
		{"remove dotted keys of an inline table", "-a", "version = 1\nplugins = { a.source = 'x', b.source = 'x', a.version = '1' }\n",
			"version = 1\nplugins = { b.source = 'x' }\n"},
		{"remove all of an inline table", "-a", "version = 1\nplugins = { a.source = 'x' } # c\n", "version = 1\nplugins = {} # c\n"},
	}
}

func TestEdits(t *testing.T) {
	for _, c := range edits() {
		for _, nl := range []string{"\n", "\r\n"} {
			before, after := []byte(c.before), []byte(c.after)
			if nl == "\r\n" && c.before != "" {
				before, after = tomltest.CRLF(before), tomltest.CRLF(after)
			}
			id := c.edit[1:]
			var got []byte
			var err error
			switch c.edit[0] {
			case '+':
				got, err = AddPlugin("x", before, id, facts)
			case '~':
				got, err = AddPlugin("x", before, id, unspecified)
			case '-':
				got, err = RemovePlugin("x", before, id)
			}
			if err != nil || string(got) != string(after) {
				t.Errorf("%s: %v\n%q\nwant\n%q", c.name, err, got, after)
			}
		}
	}
}

func TestEditsRefuse(t *testing.T) {
	const text = "version = 1\n[plugins.a]\nsource = 'x'\n"
	for _, c := range []struct {
		id   string
		w    Wanted
		want string
	}{
		{"A", facts, `plugin id "A" must match`},
		{"b", Wanted{}, "source must not be empty"},
		{"b", Wanted{Source: "/x"}, "absolute path"},
		{"b", Wanted{Source: "x", Version: "1.0 beta"}, "neither a version nor a range"},
		{"b", Wanted{Source: "x\ny"}, "not closed on its line"},
		{"b", Wanted{Source: "x", Scopes: []string{"*"}}, `"*" is not a name`},
		{"a", Wanted{Source: "x\"\nplatforms = []\n#"}, "not closed on its line"},
	} {
		got, err := AddPlugin("x", []byte(text), c.id, c.w)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %+v: %q, %v", c.id, c.w, got, err)
		}
	}
	var fault *lockfile.SyntaxError
	if _, err := AddPlugin("x", []byte("version = 1\nx = 1"), "a", facts); !errors.As(err, &fault) || fault.Line != 2 {
		t.Errorf("got %v", err)
	}
	if _, err := RemovePlugin("x", []byte(text), "b"); !errors.Is(err, ErrNotWanted) {
		t.Errorf("got %v", err)
	}
	if _, err := RemovePlugin("x", nil, "b"); !errors.As(err, &fault) {
		t.Errorf("got %v", err)
	}
}
