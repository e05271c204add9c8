package subset_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/schemas/subset"
)

// table returns the rows below a marker of the page, cell by cell.
func table(t *testing.T, marker string) [][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/schema-subset.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "<!-- "+marker+":")
	if !found {
		t.Fatalf("no table %s", marker)
	}
	var rows [][]string
	for line := range strings.Lines(rest) {
		if strings.HasPrefix(line, "| ") {
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
			rows = append(rows, cells)
		} else if len(rows) > 0 {
			return rows[2:]
		}
	}
	t.Fatalf("table %s does not end", marker)
	return nil
}

// The keywords on the page are those that are accepted.
func TestKeywordsInDocs(t *testing.T) {
	span := regexp.MustCompile("`([^`]+)`")
	listed := map[string]bool{}
	for _, row := range table(t, "keywords") {
		for _, m := range span.FindAllStringSubmatch(row[0], -1) {
			listed[m[1]] = true
		}
	}
	if len(listed) < 40 {
		t.Fatalf("only %d keywords", len(listed))
	}
	known := func(keyword string) bool {
		for _, p := range subset.Check(doc(fmt.Sprintf(`"allOf":[{%q:1}]`, keyword))) {
			if p.Code == subset.CodeKeyword && p.Pointer == "/allOf/0/"+keyword && strings.Contains(p.Message, "is not a keyword") {
				return false
			}
		}
		return true
	}
	for keyword := range listed {
		if !known(keyword) {
			t.Errorf("%s is on the page and refused", keyword)
		}
	}
	// Every keyword of 2020-12 that is not on the page.
	for _, keyword := range []string{"$anchor", "$dynamicAnchor", "$dynamicRef", "$vocabulary", "contains", "minContains", "maxContains", "patternProperties", "dependentSchemas", "unevaluatedItems",
		"unevaluatedProperties", "contentEncoding", "contentMediaType", "contentSchema", "definitions", "dependencies", "additionalItems", "id"} {
		if listed[keyword] || known(keyword) {
			t.Errorf("%s is accepted, or on the page", keyword)
		}
	}
}

// The bounds on the page are those of the code.
func TestBoundsInDocs(t *testing.T) {
	want := []int{subset.MaxDocument, subset.MaxNesting, subset.MaxSubschemas, subset.MaxRefs, subset.MaxBranches, subset.MaxInPlace, subset.MaxNames, subset.MaxEnum, subset.MaxPatterns,
		subset.MaxPattern, subset.MaxRepeat, subset.MaxPositions, subset.MaxAllPositions, subset.MaxClasses, subset.MaxGroups, subset.MaxURI, subset.MaxAnnotation, subset.MaxUIText,
		subset.MaxDepth, subset.MaxProblems}
	var got []int
	for _, row := range table(t, "bounds") {
		n, err := strconv.Atoi(strings.TrimSpace(row[len(row)-1]))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, n)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the page has %v, the code %v", got, want)
	}
}
