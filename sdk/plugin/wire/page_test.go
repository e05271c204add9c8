package wire_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

var update = flag.Bool("update", false, "write the state tables into docs/protocol-session.md")

const page = "../../../docs/protocol-session.md"

// tables renders the state tables as the protocol's page shows them.
func tables() string {
	var b strings.Builder
	for _, t := range wire.Tables {
		fmt.Fprintf(&b, "\n### %s\n\nBegins with `%s`.\n\n| from | to | when |\n| --- | --- | --- |\n", strings.ToUpper(t.Name[:1])+t.Name[1:], t.Initial)
		for _, s := range t.States {
			for _, e := range t.Edges {
				if e.From == s {
					fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", e.From, e.To, e.On)
				}
			}
		}
	}
	return b.String() + "\n"
}

// codeTable renders the error codes as the protocol's page shows them.
func codeTable() string {
	var b strings.Builder
	b.WriteString("\n| code | retryable | fatal | blame |\n| --- | --- | --- | --- |\n")
	for _, c := range wire.Codes {
		fatal, blame := "no", string(c.Blame)
		if c.Fatal {
			fatal = "yes"
		}
		if c.Blame == wire.BlameSender {
			blame = "who sent it"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.Code, c.Retry, fatal, blame)
	}
	return b.String() + "\n"
}

// TestPageHasTheTables holds that the page shows the tables as they are.
func TestPageHasTheTables(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"state tables": tables(), "codes": codeTable()} {
		begin, end := "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->"
		before, rest, ok1 := strings.Cut(string(text), begin)
		shown, after, ok2 := strings.Cut(rest, end)
		if !ok1 || !ok2 {
			t.Fatalf("the page has no place for the %s", name)
		}
		if *update {
			text = []byte(before + begin + want + end + after)
		} else if shown != want {
			t.Errorf("the page shows other %s: go test ./sdk/plugin/wire -run TestPageHasTheTables -update", name)
		}
	}
	if *update {
		if err := os.WriteFile(page, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPageHasTheWords holds that the page names every message, feature and bound.
func TestPageHasTheWords(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, m := range wire.Messages {
		words = append(words, string(m.Type))
	}
	for _, f := range wire.Features {
		words = append(words, string(f.Feature))
	}
	for _, w := range words {
		if !strings.Contains(string(text), "`"+w+"`") {
			t.Errorf("the page does not name %s", w)
		}
	}
	for n := 1; ; n++ {
		count := strings.Count(string(text), fmt.Sprintf("**S-%d** ", n))
		if count == 0 {
			if n < 100 {
				t.Errorf("rule S-%d is missing", n)
			}
			break
		}
		if count > 1 {
			t.Errorf("rule S-%d is there %d times", n, count)
		}
	}
}
