package commands

import (
	"go/ast"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/archive"
)

// Every rule of archives has its own likely causes.
func TestEveryRuleHasCauses(t *testing.T) {
	fallback := ruleCauses("no such rule")
	n := 0
	eachSource(t, "../pkgmgr/archive", func(name string, f *ast.File) {
		ast.Inspect(f, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Rule" {
				return true
			}
			text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			n++
			if causes := ruleCauses(archive.Rule(text)); len(causes) == 0 || slices.Equal(causes, fallback) {
				t.Errorf("%s: rule %q has no causes of its own", name, text)
			}
			return true
		})
	})
	if n < 30 {
		t.Errorf("%d rules found, want at least 30", n)
	}
}

// An executable for another platform is a refusal like the others, and its hint is the
// command with the right platform.
func TestWrongPlatformIsRefused(t *testing.T) {
	for _, args := range [][]string{{"pack", "src", "--platform", "linux/arm64"}, {"pack", "src", "--platform=linux/arm64"}} {
		in := newInvocation(newFakeEnv(t, args...).Env)
		in.entry = find("pack")
		f := in.classify(&pkgmgr.WrongPlatform{Where: "bin/plugin", Want: "linux/arm64", Found: "linux/amd64"})
		if f.exit != exitIntegrity || f.code != "package.platform" || f.block == nil || f.details == nil {
			t.Errorf("%q: %+v", args, f)
		}
		want := "switchyard " + strings.ReplaceAll(strings.Join(args, " "), "arm64", "amd64")
		if f.hint != want {
			t.Errorf("%q: hint %s, want %s", args, f.hint, want)
		}
	}
}
