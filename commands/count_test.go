package commands

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestCount(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{count(0, "difference"), "0 differences"},
		{count(1, "difference"), "1 difference"},
		{count(2, "difference"), "2 differences"},
		{count(1, "process", "processes"), "1 process"},
		{count(3, "process", "processes"), "3 processes"},
		{count(1, "running call"), "1 running call"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

// No text spells a number and a plural by itself, which is wrong for one; bounds,
// which never are one, may.
func TestNumbersAgree(t *testing.T) {
	plural := regexp.MustCompile(`%d ([a-z]+ )?[a-z]+s\b`)
	bound := regexp.MustCompile(`(more than|at most|all) %d`)
	n := 0
	eachSource(t, ".", func(name string, f *ast.File) {
		ast.Inspect(f, func(node ast.Node) bool {
			if lit, ok := node.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				n++
				if plural.MatchString(lit.Value) && !bound.MatchString(lit.Value) {
					t.Errorf("%s: %s: use count", name, lit.Value)
				}
			}
			return true
		})
	})
	if n == 0 {
		t.Fatal("no strings were looked at")
	}
}

// eachSource calls visit with every Go file of a directory that is no test.
func eachSource(t *testing.T, dir string, visit func(name string, f *ast.File)) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), dir+"/"+e.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		visit(dir+"/"+e.Name(), f)
	}
}
