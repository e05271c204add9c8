package archive

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// docTable returns the rows, as cells, of the table after a marker in
// docs/packages.md.
func docTable(t *testing.T, marker string) [][]string {
	t.Helper()
	b, err := os.ReadFile("../../docs/packages.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(b), "<!-- "+marker)
	if !ok {
		t.Fatalf("no marker %q", marker)
	}
	var rows [][]string
	for line := range strings.Lines(rest) {
		line = strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, "|"):
			if len(rows) > 0 {
				return rows[2:] // without the head
			}
		default:
			cells := strings.Split(strings.ReplaceAll(strings.Trim(line, "|"), `\|`, "/"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows = append(rows, cells)
		}
	}
	t.Fatal("the table has no end")
	return nil
}

// TestDocumentedBounds holds that the documents show Default.
func TestDocumentedBounds(t *testing.T) {
	size := func(n int64) string {
		switch {
		case n%(1<<30) == 0:
			return fmt.Sprintf("%d GiB", n>>30)
		case n%(1<<20) == 0:
			return fmt.Sprintf("%d MiB", n>>20)
		case n%(1<<10) == 0:
			return fmt.Sprintf("%d KiB", n>>10)
		}
		return fmt.Sprintf("%d bytes", n)
	}
	code := func(r Rule) string { return "`" + string(r) + "`" }
	d := Default
	want := [][2]string{
		{size(d.Archive), code(RuleArchiveSize)},
		{size(d.Unpacked), code(RuleUnpackedSize)},
		{fmt.Sprint(d.Entries), code(RuleEntries)},
		{size(int64(d.PathBytes)), code(RulePathLength)},
		{fmt.Sprint(d.Depth), code(RuleDepth)},
		{fmt.Sprint(d.Ratio), code(RuleRatio)},
		{size(d.RatioFree), ""},
		{size(int64(d.ZstdWindow)), code(RuleWindow)},
		{size(d.Header), code(RuleHeaderSize)},
		{size(d.Overhead), code(RuleOverhead)},
		{size(d.IgnoreFile), code(RuleIgnoreFile)},
	}
	if n := reflect.TypeFor[Limits]().NumField(); n != len(want) {
		t.Errorf("Limits has %d fields, this test knows %d", n, len(want))
	}
	var got [][2]string
	for _, row := range docTable(t, "bounds:") {
		got = append(got, [2]string{row[1], row[2]})
	}
	if !slices.Equal(got, want) {
		t.Errorf("documented\n%v\nin the code\n%v", got, want)
	}
}

// TestDocumentedRules holds that every rule is documented, in the code's order.
func TestDocumentedRules(t *testing.T) {
	var got []Rule
	for _, row := range docTable(t, "rules:") {
		got = append(got, Rule(strings.Trim(row[0], "`")))
		if len(row) != 2 || row[1] == "" {
			t.Errorf("the row of %s says nothing", row[0])
		}
	}
	if want := rules(t); !slices.Equal(got, want) {
		t.Errorf("documented %v\nin the code %v", got, want)
	}
}
