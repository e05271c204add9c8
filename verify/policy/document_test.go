package policy

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/lockfile/tomlstrict/tomltest"
)

const page = "../../docs/policy.md"

// rows returns the cells of the first table with that heading row below a heading of
// the page, each without its code marks.
func rows(t *testing.T, heading, columns string) [][]string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n"+heading+"\n")
	if !found {
		t.Fatalf("%s has no %q", page, heading)
	}
	_, table, found := strings.Cut(section, "| "+columns+" |\n")
	if !found {
		t.Fatalf("%q has no table %q", heading, columns)
	}
	var list [][]string
	for _, line := range strings.Split(table, "\n")[1:] {
		if !strings.HasPrefix(line, "|") {
			break
		}
		var cells []string
		for _, cell := range strings.Split(strings.Trim(line, "|"), "|") {
			cells = append(cells, strings.Trim(strings.TrimSpace(cell), "`"))
		}
		list = append(list, cells)
	}
	if len(list) < 2 {
		t.Fatalf("%q has %d rows", heading, len(list))
	}
	return list
}

func column(rows [][]string, i int) []string {
	var list []string
	for _, row := range rows {
		list = append(list, row[i])
	}
	return list
}

// known asks a reader which members it knows, by a member that no table has.
func known(t *testing.T, err error) []string {
	t.Helper()
	for _, m := range regexp.MustCompile(`unknown member "zzz"; known are ([a-z, -]+)`).FindAllStringSubmatch(fmt.Sprint(err), -1) {
		return strings.Split(m[1], ", ")
	}
	t.Fatalf("no fault about zzz: %v", err)
	return nil
}

// TestDocumentedMembers: the page names the members that the readers know, and no others.
func TestDocumentedMembers(t *testing.T) {
	parse := func(text string) error { _, err := Parse("p", []byte(text)); return err }
	narrow := func(text string) error { _, err := parseNarrowing("n", []byte(text)); return err }
	for _, c := range []struct {
		heading, columns string
		err              error
	}{
		{"### Members", "member | default | meaning", parse("version = 1\nzzz = 1\n")},
		{"### lists-stale", "member | default | meaning", parse("version = 1\n[lists-stale]\nzzz = 1\n")},
		{"### publisher", "member | default | meaning", parse("version = 1\n[[publisher]]\nplugins = [\"*\"]\nkey = \"" + keyA + "\"\nzzz = 1\n")},
		{"### provenance", "member | default | meaning", parse("version = 1\n[provenance]\nbuilder = [\"*\"]\nzzz = 1\n")},
		{"## Narrowing by a project", "member | combines", narrow("[policy]\nzzz = 1\n")},
	} {
		documented, want := column(rows(t, c.heading, c.columns), 0), known(t, c.err)
		slices.Sort(documented)
		slices.Sort(want)
		if !slices.Equal(documented, want) {
			t.Errorf("%q documents %v; the reader knows %v", c.heading, documented, want)
		}
	}
}

// TestDocumentedDefaults: a file that writes every documented default out means what
// a file without them means.
func TestDocumentedDefaults(t *testing.T) {
	var text strings.Builder
	written := 0
	write := func(heading string) {
		for _, row := range rows(t, heading, "member | default | meaning") {
			if d := row[1]; d != "none" && d != "required" && d != "see below" {
				fmt.Fprintf(&text, "%s = %s\n", row[0], d)
				written++
			}
		}
	}
	text.WriteString("version = 1\n")
	write("### Members")
	text.WriteString("[lists-stale]\n")
	write("### lists-stale")
	if written != 8 {
		t.Fatalf("%d defaults in\n%s", written, text.String())
	}
	p, err := Parse("defaults", []byte(text.String()))
	if err != nil || !reflect.DeepEqual(p, Default()) {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestDocumentedRules: the page names the rules in their order, and with each the code
// that the rule fails with.
func TestDocumentedRules(t *testing.T) {
	table := rows(t, "## What is decided", "rule | fails with | when")
	codes := make(map[string]map[string]bool)
	for seed := range uint64(3000) {
		r := newRandom(seed)
		report := Evaluate(r.policy(), r.input())
		if documented := column(table, 0); len(documented) != len(report.Results) {
			t.Fatalf("documented are %v; there are %d rules", documented, len(report.Results))
		}
		for i, one := range report.Results {
			if one.Rule != table[i][0] {
				t.Fatalf("rule %d is %s and documented as %s", i, one.Rule, table[i][0])
			}
			if one.Code != "" {
				if codes[one.Rule] == nil {
					codes[one.Rule] = make(map[string]bool)
				}
				codes[one.Rule][one.Code] = true
			}
		}
	}
	for _, row := range table {
		if len(codes[row[0]]) != 1 || !codes[row[0]][row[1]] {
			t.Errorf("%s is documented with %s and fails with %v", row[0], row[1], codes[row[0]])
		}
	}
	verdicts := column(rows(t, "## What is decided", "verdict | meaning"), 0)
	if want := []string{string(Signed), string(Reviewed), string(RefusedByPolicy)}; !slices.Equal(verdicts, want) {
		t.Errorf("documented verdicts are %v", verdicts)
	}
}

// TestDocumentedCodesAreAll: the constants of the package are the documented codes.
func TestDocumentedCodesAreAll(t *testing.T) {
	constants := regexp.MustCompile(`= "(policy\.[a-z_]+)"`).FindAllStringSubmatch(string(read(t, "report.go")), -1)
	var codes []string
	for _, m := range constants {
		codes = append(codes, m[1])
	}
	documented := column(rows(t, "## What is decided", "rule | fails with | when"), 1)
	slices.Sort(codes)
	slices.Sort(documented)
	if len(codes) == 0 || !slices.Equal(codes, documented) {
		t.Errorf("documented are %v; the code has %v", documented, codes)
	}
}

// TestDocumentedExamples: the page's examples are read, and the second narrows the first.
func TestDocumentedExamples(t *testing.T) {
	blocks := tomltest.Blocks(t, page)
	if len(blocks) != 2 {
		t.Fatalf("%d examples", len(blocks))
	}
	p, err := Parse(page, blocks[0])
	if err != nil || len(p.Publishers) != 2 || p.Signature != Required {
		t.Fatalf("%+v, %v", p, err)
	}
	n, err := parseNarrowing(page, blocks[1])
	if err != nil || n == nil || len(n.Publishers) != 1 {
		t.Fatalf("%+v, %v", n, err)
	}
	if q := p.Narrow(n); len(q.DeniedLicences) != 3 || len(q.Sources) != 2 {
		t.Errorf("%+v", q)
	}
}
