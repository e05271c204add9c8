package sessionmanifest_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
)

var span = regexp.MustCompile("`([^`]+)`")

// rows returns the rows of the table below a marker of the page.
func rows(t *testing.T, marker string) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/session-manifest.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "<!-- "+marker+":")
	if !found {
		t.Fatalf("no table %s", marker)
	}
	var list []string
	for line := range strings.Lines(rest) {
		if strings.HasPrefix(line, "| ") {
			list = append(list, line)
		} else if len(list) > 0 {
			break
		}
	}
	return list[2:]
}

// Every code on the page is given by some case, and no other is.
func TestCodesInDocs(t *testing.T) {
	listed, given := map[string]bool{}, map[string]bool{}
	for _, row := range rows(t, "codes") {
		listed[span.FindStringSubmatch(row)[1]] = true
	}
	for _, r := range rules {
		if _, code, ok := strings.Cut(r.problem, " "); ok {
			given[code] = true
		}
	}
	for code := range listed {
		if !given[code] {
			t.Errorf("no case has the code %s", code)
		}
	}
	for code := range given {
		if !listed[code] {
			t.Errorf("%s is not on the page", code)
		}
	}
}

func TestFeaturesInDocs(t *testing.T) {
	var got, want []string
	for _, row := range rows(t, "features") {
		version := strings.Fields(row)[1]
		for _, m := range span.FindAllStringSubmatch(row, -1) {
			got = append(got, version+" "+m[1])
		}
	}
	for _, f := range sessionmanifest.Features {
		want = append(want, fmt.Sprintf("1.%d %s", f.Minor, f.Token))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the page has %q, the code %q", got, want)
	}
}
