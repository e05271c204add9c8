package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/switchyard-plugins/switchyard"

// layers lists, for each place, the places that it may import beside itself. What
// lies below a place follows its rule unless it has one of its own.
var layers = map[string][]string{
	"":                {"commands"},
	"commands":        {"runtime", "pkgmgr", "lockfile", "verify", "schemas", "sdk"},
	"runtime":         {"pkgmgr", "lockfile", "schemas", "sdk/plugin"},
	"runtime/process": {"schemas"},
	"runtime/call":    {"schemas", "sdk/plugin", "runtime/process/redact"},
	"pkgmgr":          {"lockfile", "verify", "schemas"},
	"pkgmgr/archive":  {"schemas"},
	"pkgmgr/state":    {"schemas"},
	"pkgmgr/project":  {"lockfile", "verify/policy", "schemas"},
	"lockfile":        {"schemas"},
	"verify":          {"schemas"},
	"schemas":         {},
	"sdk/plugin":      {"schemas/manifest"},
	"sdk/examples":    {"sdk/plugin"},
	"sdk/scaffold":    {"schemas/manifest", "sdk/plugin"},
}

type listed struct {
	ImportPath, Dir                    string
	Imports, TestImports, XTestImports []string
	Standard                           bool
}

func goList(t *testing.T, args ...string) []listed {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list", "-json=ImportPath,Dir,Imports,Standard"}, args...)...).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var list []listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p listed
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	return list
}

func place(importPath string) string {
	return strings.TrimPrefix(strings.TrimPrefix(importPath, module), "/")
}

// rule returns the longest place of layers that p lies in.
func rule(p string) (string, bool) {
	for ; ; p = path.Dir(p) {
		if p == "." {
			p = ""
		}
		if _, ok := layers[p]; ok {
			return p, true
		}
		if p == "" {
			return "", false
		}
	}
}

func within(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

// TestImportDirections holds the layers: imports run one way, and the SDK that
// authors link stays free of the host.
func TestImportDirections(t *testing.T) {
	packages := goList(t, "./...")
	if len(packages) < 10 {
		t.Fatalf("only %d packages listed", len(packages))
	}
	for _, p := range packages {
		mine := place(p.ImportPath)
		owner, ok := rule(mine)
		if !ok || owner == "" && mine != "" {
			t.Errorf("%s lies in no place of the architecture", p.ImportPath)
			continue
		}
		for _, imp := range p.Imports {
			if !strings.HasPrefix(imp, module) {
				continue
			}
			other := place(imp)
			if within(other, owner) || slices.ContainsFunc(layers[owner], func(a string) bool { return within(other, a) }) {
				continue
			}
			t.Errorf("%s imports %s; %q may import %v only", p.ImportPath, imp, owner, layers[owner])
		}
	}
}

// TestSDKLinksStandardLibraryOnly holds what the SDK promises its users.
func TestSDKLinksStandardLibraryOnly(t *testing.T) {
	for _, p := range goList(t, "-deps", "./sdk/plugin") {
		if !p.Standard && !within(place(p.ImportPath), "sdk/plugin") && place(p.ImportPath) != "schemas/manifest" {
			t.Errorf("sdk/plugin links %s", p.ImportPath)
		}
	}
}

// TestSwitchyardLinks holds what the program must not link: what is slow to load.
func TestSwitchyardLinks(t *testing.T) {
	for _, p := range goList(t, "-deps", ".") {
		for _, heavy := range []string{"github.com/sigstore/", "github.com/spdx/", "github.com/santhosh-tekuri/", "google.golang.org/", "github.com/Masterminds/", "testing"} {
			if strings.HasPrefix(p.ImportPath, heavy) {
				t.Errorf("switchyard links %s", p.ImportPath)
			}
		}
	}
}

var (
	codeSpan = regexp.MustCompile("`([^`\n]+)`")
	mdLink   = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)
	pathLike = regexp.MustCompile(`^(commands|docs|lockfile|pkgmgr|runtime|schemas|sdk|testdata|\.ci)/[A-Za-z0-9_./-]*[A-Za-z0-9_/-]$`)
)

func documents(t *testing.T) []string {
	t.Helper()
	var docs []string
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != "." && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".ci" || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if strings.HasSuffix(p, ".md") {
			docs = append(docs, p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(docs) < 8 {
		t.Fatalf("only %d documents found: %v", len(docs), docs)
	}
	return docs
}

// TestDocumentsNameWhatExists checks every link and every path in code spans.
func TestDocumentsNameWhatExists(t *testing.T) {
	for _, doc := range documents(t) {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range mdLink.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(doc), m[1])); err != nil {
				t.Errorf("%s links to %s, which does not exist", doc, m[1])
			}
		}
		for _, m := range codeSpan.FindAllStringSubmatch(string(text), -1) {
			if pathLike.MatchString(m[1]) && !strings.Contains(m[1], "...") {
				if _, err := os.Stat(m[1]); err != nil {
					t.Errorf("%s names %s, which does not exist", doc, m[1])
				}
			}
		}
	}
}

// TestDocumentsNameRealCommands checks every `switchyard …` in a code span or block
// against the commands of the program.
func TestDocumentsNameRealCommands(t *testing.T) {
	out, err := exec.Command("go", "run", "-tags=urfave_cli_no_docs", ".", "help").Output()
	if err != nil {
		t.Fatalf("list of commands: %v", err)
	}
	known := []string{"COMMAND"}
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z]+)(?: [a-z]+)?  `).FindAllStringSubmatch(string(out), -1) {
		known = append(known, m[1])
	}
	if len(known) < 30 {
		t.Fatalf("only %d commands: %v", len(known), known)
	}
	use := regexp.MustCompile(`(?:^|[\s$(` + "`" + `])switchyard ((?:--?[a-z-]+(?:[= ][^\s` + "`" + `-][^\s` + "`" + `]*)? )*)([a-z][a-z-]*)`)
	seen := 0
	for _, doc := range documents(t) {
		f, err := os.Open(doc)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		inBlock := false
		line := 0
		for s := bufio.NewScanner(f); s.Scan(); {
			line++
			text := s.Text()
			if strings.HasPrefix(strings.TrimSpace(text), "```") {
				inBlock = !inBlock
				continue
			}
			spans := []string{text}
			if inBlock && strings.HasPrefix(strings.TrimSpace(text), "#") {
				continue
			}
			if !inBlock {
				spans = nil
				for _, m := range codeSpan.FindAllStringSubmatch(text, -1) {
					spans = append(spans, m[1])
				}
			}
			for _, span := range spans {
				for _, m := range use.FindAllStringSubmatch(span, -1) {
					seen++
					if !slices.Contains(known, m[2]) {
						t.Errorf("%s:%d: %q is no command", doc, line, fmt.Sprintf("switchyard %s", m[2]))
					}
				}
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d commands found in the documents", seen)
	}
}

// TestSecurityModelNamesRealTests holds every line of the security model's table to
// tests that exist.
func TestSecurityModelNamesRealTests(t *testing.T) {
	text, err := os.ReadFile("docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	exists := make(map[string]bool)
	defined := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)
	err = filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, "_test.go") {
			return err
		}
		code, err := os.ReadFile(p)
		for _, m := range defined.FindAllSubmatch(code, -1) {
			exists[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") || strings.HasPrefix(line, "| attacker") {
			continue
		}
		lines++
		named := regexp.MustCompile("`(Test[A-Za-z0-9_]+)`").FindAllStringSubmatch(cells[len(cells)-1], -1)
		if len(named) == 0 {
			t.Errorf("docs/security.md names no test for: %s", cells[0])
		}
		for _, m := range named {
			if !exists[m[1]] {
				t.Errorf("docs/security.md names %s, which does not exist", m[1])
			}
		}
	}
	if lines < 10 {
		t.Errorf("only %d lines found in the table", lines)
	}
}
