package main

import (
	"os"
	"strings"
	"testing"
)

// TestGuide holds that the code of the guide is this program's.
func TestGuide(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/sdk-go.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(guide), "\n## A session plugin\n")
	if !ok {
		t.Fatal("the guide has no section on session plugins")
	}
	var program strings.Builder
	for _, name := range []string{"main.go", "library.go", "word_index_test.go"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		program.Write(text)
	}
	blocks := strings.Split(section, "```go\n")[1:]
	for _, block := range blocks {
		code, _, ok := strings.Cut(block, "```")
		if !ok || !strings.Contains(program.String(), code) {
			t.Errorf("the program does not have\n%s", code)
		}
	}
	if len(blocks) < 6 {
		t.Errorf("only %d pieces of code", len(blocks))
	}
}
