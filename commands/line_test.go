package commands

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// probe is a command line sorted by a permuter that knows the global flags and a
// few of a command's.
func probe(args ...string) (*permuter, error) {
	p := &permuter{args: args, command: "probe"}
	p.know((&globals{}).flags())
	p.know([]cli.Flag{
		&cli.StringSliceFlag{Name: "scope"},
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}},
		&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}},
	})
	return p, p.toEnd()
}

func TestFlagsAnywhere(t *testing.T) {
	for _, c := range []struct {
		args             string
		flags, arguments string
	}{
		{"a b", "", "a b"},
		{"--json a", "--json", "a"},
		{"a --json b --scope x c", "--json --scope=x", "a b c"},
		{"a --scope x,y --scope=z", "--scope=x,y --scope=z", "a"},
		{"--scope -", "--scope=-", ""},
		{"-q -f a", "--quiet --follow", "a"},
		{"-qf a", "--quiet --follow", "a"},
		{"-ofile a", "--output=file", "a"},
		{"-o file a", "--output=file", "a"},
		{"-o=file a", "--output=file", "a"},
		{"-qofile", "--quiet --output=file", ""},
		{"-f=false", "--follow=false", ""},
		{"a -- --json -q", "", "a --json -q"},
		{"- a", "", "- a"},
		{"--scope -1", "--scope=-1", ""},
		{"--scope=--json", "--scope=--json", ""},
	} {
		p, err := probe(strings.Fields(c.args)...)
		if err != nil {
			t.Errorf("%q: %v", c.args, err)
			continue
		}
		if got := strings.Join(p.flags, " "); got != c.flags {
			t.Errorf("%q: flags %q, want %q", c.args, got, c.flags)
		}
		if got := strings.Join(p.arguments, " "); got != c.arguments {
			t.Errorf("%q: arguments %q, want %q", c.args, got, c.arguments)
		}
	}
}

func TestFlagErrors(t *testing.T) {
	for _, c := range []struct{ args, message, hint string }{
		{"--jsn a", "did you mean --json?", "--json a"},
		{"--scop=x", "did you mean --scope?", "--scope=x"},
		{"--wholly-unlike", "unknown flag --wholly-unlike", "help probe"},
		{"-x", "unknown flag -x", "help probe"},
		{"-15", "write -- before a number below zero", "help probe"},
		{"--o file", "unknown flag --o", "help probe"},
		{"--scope", "--scope needs a value", "help probe"},
		{"--scope=", "--scope needs a value that is not empty", "help probe"},
		{"-o=", "-o needs a value that is not empty", "help probe"},
		{"--scope --json", "write --scope=--json", "help probe"},
	} {
		_, err := probe(strings.Fields(c.args)...)
		var usage *usageError
		if !errors.As(err, &usage) {
			t.Errorf("%q: got %v, want a usage error", c.args, err)
			continue
		}
		if !strings.Contains(usage.message, c.message) || strings.Join(usage.hint, " ") != c.hint {
			t.Errorf("%q: %q with hint %q, want %q with %q", c.args, usage.message, usage.hint, c.message, c.hint)
		}
	}
}

func TestSliceFlagsKeepCommas(t *testing.T) {
	var got []string
	e := entry{name: "probe"}
	in := newInvocation(newFakeEnv(t).Env)
	in.entry = &e
	command := &cli.Command{
		Name:   "probe",
		Flags:  []cli.Flag{&cli.StringSliceFlag{Name: "scope"}},
		Action: func(c *cli.Context) error { got = c.StringSlice("scope"); return nil },
	}
	if err := in.perform(&line{command: command, words: []string{"--scope=a,b", "--scope=c", "--"}}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, []string{"a,b", "c"}) {
		t.Errorf("got %q", got)
	}
}

func TestNearest(t *testing.T) {
	words := []string{"install", "uninstall", "list", "lock", "logs", "review", "revoke"}
	for _, c := range []struct{ typed, want string }{
		{"instal", "install"}, {"isntall", "install"}, {"lst", "list"}, {"INSTALL", "install"},
		{"reviw", "review"}, {"revok", "revoke"}, {"loks", "logs"}, {"xyzzy", ""}, {"", ""}, {"q", ""},
	} {
		if got := nearest(c.typed, words); got != c.want {
			t.Errorf("nearest(%q) = %q, want %q", c.typed, got, c.want)
		}
	}
}
