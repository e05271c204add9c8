package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

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

// A snippet is what a document shows as code: a span, or a line of a block.
type snippet struct {
	doc   string
	where string // "file:line"
	text  string
	block bool
}

// snippets returns the code of every document. In blocks, comments are not code.
func snippets(t *testing.T) []snippet {
	t.Helper()
	var all []snippet
	for _, doc := range documents(t) {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		fenced, line := false, 0
		for l := range strings.Lines(string(text)) {
			line++
			where := fmt.Sprintf("%s:%d", doc, line)
			switch trimmed := strings.TrimSpace(l); {
			case strings.HasPrefix(trimmed, "```"):
				fenced = !fenced
			case fenced, strings.HasPrefix(l, "    "):
				code, _, _ := strings.Cut(" "+trimmed, " #")
				all = append(all, snippet{doc, where, strings.TrimSpace(code), true})
			default:
				for _, m := range codeSpan.FindAllStringSubmatch(l, -1) {
					all = append(all, snippet{doc, where, m[1], false})
				}
			}
		}
	}
	return all
}

// A commandLine is what the program says of itself.
type commandLine struct {
	flags map[string][]string // of each command, "-x" and "--xyz", those of every command included
	later map[string][]string // the second words of commands that have two
}

func readCommandLine(t *testing.T) commandLine {
	t.Helper()
	program := filepath.Join(t.TempDir(), "switchyard")
	if out, err := exec.Command("go", "build", "-tags=urfave_cli_no_docs", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, out)
	}
	help := func(about ...string) string {
		out, err := exec.Command(program, append([]string{"help"}, about...)...).Output()
		if err != nil {
			t.Fatalf("help %s: %v", about, err)
		}
		return string(out)
	}
	cl := commandLine{flags: map[string][]string{}, later: map[string][]string{}}
	listed := regexp.MustCompile(`(?m)^  ([a-z][a-z-]*)(?: ([a-z]+))?  `)
	flag := regexp.MustCompile(`(?:^|, )(--?[a-zA-Z][a-z-]*)`)
	for _, m := range listed.FindAllStringSubmatch(help(), -1) {
		name := m[1]
		if m[2] != "" {
			cl.later[m[1]] = append(cl.later[m[1]], m[2])
			name += " " + m[2]
		}
		_, described, _ := strings.Cut(help(strings.Fields(name)...), "\nFlags")
		for line := range strings.Lines(described) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "-") {
				named, _, _ := strings.Cut(line, "  ") // from what it does
				for _, f := range flag.FindAllStringSubmatch(named, -1) {
					cl.flags[name] = append(cl.flags[name], f[1])
				}
			}
		}
	}
	if len(cl.flags) < 30 || len(cl.flags["lock"]) < 10 {
		t.Fatalf("only %d commands; lock has the flags %q", len(cl.flags), cl.flags["lock"])
	}
	return cl
}

// anywhere reports whether some command has the flag.
func (cl commandLine) anywhere(flag string) bool {
	for _, flags := range cl.flags {
		if slices.Contains(flags, flag) {
			return true
		}
	}
	return false
}

// fault says what of the words after "switchyard" does not exist, or "".
func (cl commandLine) fault(words []string) string {
	name := ""
	for i, w := range words {
		w = strings.Trim(w, "[](),.:'\"")
		switch isFlag := strings.HasPrefix(w, "-") && len(w) > 1; {
		case w == "--" && name != "": // another program's command line
			return ""
		case isFlag && w != "--":
			flag, _, _ := strings.Cut(w, "=")
			flags, known := cl.flags[name]
			switch {
			case known && !slices.Contains(flags, flag):
				return fmt.Sprintf("%q has no flag %s", name, flag)
			case !known && !cl.anywhere(flag):
				return "no command has the flag " + flag
			}
		case name != "" || i > 0 && words[i-1] == "--data-dir": // an argument, or a flag's value
		case w == "COMMAND":
			return ""
		case cl.later[w] != nil:
			if name = w; i+1 == len(words) {
				return ""
			}
			second := strings.Trim(words[i+1], "[](),.:'\"")
			if strings.HasPrefix(second, "-") && cl.flags[w] != nil { // the family's name is a command too
				continue
			}
			if !slices.Contains(cl.later[w], second) && second != "COMMAND" {
				return fmt.Sprintf("%q is no command", w+" "+second)
			}
			name += " " + second
		case cl.flags[w] == nil:
			return fmt.Sprintf("%q is no command", w)
		default:
			name = w
		}
	}
	return ""
}

// TestDocumentsNameRealCommands checks every command in a code span or block, with or
// without the program's name before it: the one or two words of it, and its flags.
func TestDocumentsNameRealCommands(t *testing.T) {
	cl := readCommandLine(t)
	for bad, words := range map[string][]string{
		"a command": {"frobnicate"}, "a second word": {"project", "list2"}, "a flag": {"lock", "--frozen"}, "another command's flag": {"version", "--merge"},
		"a flag before the command": {"--frozen", "lock"}, "a flag in brackets": {"lock", "[--frozen]"}, "a flag with a value": {"lock", "--frozen=yes"},
	} {
		if cl.fault(words) == "" {
			t.Errorf("this test would not see %s that does not exist", bad)
		}
	}
	var seconds []string
	for _, words := range cl.later {
		seconds = append(seconds, words...)
	}
	use := regexp.MustCompile(`(?:^|[\s$('"])switchyard ((?:[^|;&#><…]|<[a-z])*)`)
	bare := regexp.MustCompile(`^[a-z][a-z-]*( [a-z]+)?( \S.*)?$`)
	uses, flags := 0, 0
	for _, s := range snippets(t) {
		found := use.FindAllStringSubmatch(s.text, -1)
		for _, m := range found {
			uses++
			if fault := cl.fault(strings.Fields(m[1])); fault != "" {
				t.Errorf("%s: `%s`: %s", s.where, s.text, fault)
			}
		}
		if s.block || len(found) > 0 {
			continue
		}
		words := strings.Fields(s.text)
		switch {
		case len(words) == 0:
		case strings.HasPrefix(words[0], "--"):
			// A sample plugin has flags of its own.
			flag, _, _ := strings.Cut(words[0], "=")
			if flags++; !cl.anywhere(flag) && !strings.HasPrefix(s.doc, "sdk/examples/") {
				t.Errorf("%s: `%s`: no command has this flag", s.where, s.text)
			}
		case !bare.MatchString(s.text):
		case cl.later[words[0]] != nil, cl.flags[words[0]] != nil && len(words) > 1 && strings.Contains(s.text, " -"),
			len(words) == 2 && slices.Contains(seconds, words[1]):
			uses++
			if fault := cl.fault(words); fault != "" {
				t.Errorf("%s: `%s`: %s", s.where, s.text, fault)
			}
		}
	}
	if uses < 40 || flags < 8 {
		t.Errorf("only %d commands and %d flags found in the documents", uses, flags)
	}
}

// TestDocumentsNameRealTargets checks every `make …` against the Makefile beside the
// document, or that of the repository.
func TestDocumentsNameRealTargets(t *testing.T) {
	targets := func(dir string) map[string]bool {
		makefile, err := os.ReadFile(filepath.Join(dir, "Makefile"))
		if err != nil {
			return nil
		}
		all := map[string]bool{}
		for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z-]*):`).FindAllSubmatch(makefile, -1) {
			all[string(m[1])] = true
		}
		return all
	}
	ours := targets(".")
	use := regexp.MustCompile(`(?:^|[\s$(])make ([a-z][a-z-]*)`)
	seen := 0
	for _, s := range snippets(t) {
		for _, m := range use.FindAllStringSubmatch(s.text, -1) {
			seen++
			known := targets(filepath.Dir(s.doc))
			if known == nil {
				known = ours
			}
			if !known[m[1]] {
				t.Errorf("%s: `make %s`: the Makefile has no such target", s.where, m[1])
			}
		}
	}
	if seen < 8 || len(ours) < 8 {
		t.Errorf("only %d targets, and %d uses of one in the documents", len(ours), seen)
	}
}

// TestDocumentsNameRealVariables checks every name of a variable against what the code,
// the Makefile and CI read.
func TestDocumentsNameRealVariables(t *testing.T) {
	known := map[string]bool{}
	name := regexp.MustCompile(`\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b|\b[A-Z]{4,}\b`)
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == ".git" {
			return fs.SkipDir
		}
		source := strings.HasSuffix(p, ".go") || strings.HasSuffix(p, ".sh") || d.Name() == "Makefile" || p == filepath.Join(".ci", "run")
		if d.IsDir() || !source || strings.HasPrefix(d.Name(), "documents_test") {
			return nil
		}
		text, err := os.ReadFile(p)
		for _, m := range name.FindAll(text, -1) {
			known[string(m)] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	variable := regexp.MustCompile(`(?:^|[\s$({])([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\b`)
	assigned := regexp.MustCompile(`(?:^|[\s(])([A-Z][A-Z0-9_]{2,})=`)
	seen := 0
	for _, s := range snippets(t) {
		for _, m := range append(variable.FindAllStringSubmatch(s.text, -1), assigned.FindAllStringSubmatch(s.text, -1)...) {
			seen++
			if !known[m[1]] {
				t.Errorf("%s: nothing reads a variable %s", s.where, m[1])
			}
		}
	}
	if seen < 10 || !known["SWITCHYARD_DATA_DIR"] {
		t.Errorf("only %d variables found in the documents", seen)
	}
}

// TestThreatsNameRealTests holds every line of the tables of threats to tests that
// exist.
func TestThreatsNameRealTests(t *testing.T) {
	exists := make(map[string]bool)
	defined := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
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
	for doc, atLeast := range map[string]int{"docs/security.md": 10, "docs/supply-chain.md": 20} {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		lines := 0
		for line := range strings.Lines(string(text)) {
			cells := strings.Split(strings.TrimSpace(line), " | ")
			if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") || strings.HasPrefix(line, "| attack") {
				continue
			}
			lines++
			named := regexp.MustCompile("`(Test[A-Za-z0-9_]+)`").FindAllStringSubmatch(cells[len(cells)-1], -1)
			if len(named) == 0 {
				t.Errorf("%s names no test for: %s", doc, cells[0])
			}
			for _, m := range named {
				if !exists[m[1]] {
					t.Errorf("%s names %s, which does not exist", doc, m[1])
				}
			}
		}
		if lines < atLeast {
			t.Errorf("only %d lines found in the table of %s", lines, doc)
		}
	}
}
