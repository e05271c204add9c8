package main

import (
	"bytes"
	"flag"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/review.svg anew")

// TestPictureIsRealOutput makes the README's picture of a review from what the
// program prints about the sample package todo-report, and fails when the committed
// picture is another one.
func TestPictureIsRealOutput(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "switchyard")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	source, err := filepath.Abs("sdk/examples/todo-report/package")
	if err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		cmd := exec.Command(program, args...)
		cmd.Args[0] = "switchyard"
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "SWITCHYARD_DATA_DIR="+filepath.Join(dir, "data"), "NO_COLOR=1")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("switchyard %v: %v", args, err)
		}
		return string(out)
	}
	run("pack", source)
	const archive = "todo-report-1.0.0.tar.zst"
	got := picture("$ switchyard review "+archive, run("review", archive))
	const path = "docs/review.svg"
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the program prints; run: go test -run TestPictureIsRealOutput -update .", path)
	}
}

// picture sets text as a terminal would show it: headings bold, details plain.
func picture(command, text string) []byte {
	const lineHeight, charWidth, margin = 18, 8.0, 16
	lines := append([]string{command}, strings.Split(strings.TrimRight(text, "\n"), "\n")...)
	width := 0
	for _, l := range lines {
		width = max(width, len([]rune(l)))
	}
	var b bytes.Buffer
	w, h := int(float64(width)*charWidth)+2*margin, len(lines)*lineHeight+2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+"\n", w, h, w, h)
	fmt.Fprintf(&b, "<title>A review, as switchyard prints it</title>\n")
	fmt.Fprintf(&b, `<rect width="%d" height="%d" rx="8" fill="#10151c"/>`+"\n", w, h)
	fmt.Fprintf(&b, `<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="13" fill="#c9d4e0" xml:space="preserve">`+"\n")
	for i, l := range lines {
		style := ""
		switch {
		case i == 0:
			style = ` fill="#7fd1b9"`
		case l != "" && l[0] != ' ':
			style = ` fill="#ffffff" font-weight="bold"`
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d"%s>%s</text>`+"\n", margin, margin+lineHeight*i+13, style, html.EscapeString(l))
	}
	b.WriteString("</g>\n</svg>\n")
	return b.Bytes()
}
