package revlist

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// firstCells returns, for each table of the page whose head begins with name, what
// stands in the first column.
func firstCells(t *testing.T, page, name string) []string {
	t.Helper()
	var cells []string
	in := false
	for line := range strings.Lines(page) {
		cell, isRow := strings.CutPrefix(line, "| ")
		cell, _, _ = strings.Cut(cell, " |")
		switch {
		case !isRow:
			in = false
		case cell == name:
			in = true
		case in && cell != "---":
			cells = append(cells, strings.Trim(cell, "`"))
		}
	}
	if len(cells) == 0 {
		t.Fatalf("the page has no table %q", name)
	}
	return cells
}

// constants returns the string constants of a file whose type has a name, or none.
func constants(t *testing.T, file, typeName string) []string {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, d := range tree.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			id, _ := v.Type.(*ast.Ident)
			if (id == nil) != (typeName == "") || id != nil && id.Name != typeName {
				continue
			}
			if lit, ok := v.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
				text, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, text)
			}
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s has no constants of type %q", file, typeName)
	}
	return out
}

// TestDocument compares the page's tables with the code.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/revocation-lists.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	same := func(table string, code []string) {
		t.Helper()
		cells := firstCells(t, page, table)
		slices.Sort(cells)
		if want := slices.Sorted(slices.Values(code)); !slices.Equal(cells, want) {
			t.Errorf("table %q has\n%q, the code\n%q", table, cells, want)
		}
	}
	same("member", listMembers)
	same("entry member", entryMembers)
	same("root member", rootMembers)
	same("dissent member", dissentMembers)
	same("reason", constants(t, "fault.go", ""))
	same("kind", constants(t, "entry.go", "Kind"))
	same("root code", constants(t, "root.go", "Code"))
	var outcomes []string
	for _, o := range constants(t, "judge.go", "Outcome") {
		outcomes = append(outcomes, string(Outcome(o).Code()))
	}
	same("outcome", outcomes)
	for _, o := range constants(t, "judge.go", "Outcome") {
		v := Verdict{Outcome: Outcome(o)}
		yes := map[bool]string{true: "yes", false: "no"}
		row := regexp.MustCompile("(?m)^\\| `" + regexp.QuoteMeta(string(v.Code())) + "` \\|.*\\| " + yes[v.Silence()] + " \\| " + yes[v.Adoptable()] + " \\|$")
		if !row.MatchString(page) {
			t.Errorf("the row of %s says otherwise than the code: silence %v, adoptable %v", v.Code(), v.Silence(), v.Adoptable())
		}
	}
	for bound, value := range map[string]int{
		"bytes of a list": MaxBytes, "entries of a list": MaxEntries, "ranges of one plugin id": MaxRangesPerID,
		"bytes of an id": MaxID, "bytes of a range": MaxRange, "bytes of an identity or its issuer": MaxSignerText,
		"bytes of a text": MaxText, "bytes of an advisory": MaxAdvisory, "bytes of a replacement": MaxReplacement,
		"bytes of a root": MaxRootBytes, "signers of one role": MaxSigners,
		"bytes of a dissent file": MaxDissentBytes, "dissents": MaxDissents,
	} {
		if !strings.Contains(page, "| "+bound+" | "+strconv.Itoa(value)+" |") {
			t.Errorf("the page does not say that %q is %d", bound, value)
		}
	}
	if n := len(firstCells(t, page, "bound")); n != 13 {
		t.Errorf("the page has %d bounds", n)
	}
	for _, word := range slices.Concat(constants(t, "entry.go", "Reason"), constants(t, "entry.go", "Action"),
		[]string{ListSchema, RootSchema, DissentSchema, strconv.FormatUint(maxInteger, 10)}) {
		if !strings.Contains(page, "`"+word+"`") && !strings.Contains(page, word+".") {
			t.Errorf("the page does not name %s", word)
		}
	}
	// The page's example is a list.
	_, example, _ := strings.Cut(page, "```json\n")
	example, _, _ = strings.Cut(example, "\n```")
	if h, err := readAll([]byte(example)); err != nil || h.Entries != 2 {
		t.Errorf("the example: %+v, %v", h, err)
	}
}
