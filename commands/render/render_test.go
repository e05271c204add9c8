package render

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"plain text, 100%", "plain text, 100%"},
		{"Grüße 世界 ✓", "Grüße 世界 ✓"},
		{"a\nb\tc\r", `a\nb\tc\r`},
		{"\x1b[31mred\x1b[0m", `\u001b[31mred\u001b[0m`},
		{"bell\a back\b del\x7f", `bell\u0007 back\u0008 del\u007f`},
		{"c1 \u009b31m", `c1 \u009b31m`},
		{"abc\u202egpj.exe", `abc\u202egpj.exe`},
		{"\u2066isolate\u2069 \u061c \u200e", `\u2066isolate\u2069 \u061c \u200e`},
		{"zero\u200bwidth\u200d\u2060\ufeff", `zero\u200bwidth\u200d\u2060\ufeff`},
		{"line\u2028paragraph\u2029nel\u0085", `line\u2028paragraph\u2029nel\u0085`},
		{"filler\u3164 blank\u2800 selector\ufe0f", `filler\u3164 blank\u2800 selector\ufe0f`},
		{"tag \U000e0041 selector \U000e0101", `tag \U000e0041 selector \U000e0101`},
		{"no-break\u00a0space soft\u00adhyphen", `no-break\u00a0space soft\u00adhyphen`},
		{"bad \xff\xc0\xaf utf-8", `bad \xff\xc0\xaf utf-8`},
		{"replacement \ufffd", "replacement \ufffd"},
		{`C:\new`, `C:\\new`},
		{`\u202e`, `\\u202e`},
	} {
		if got := Text(c.in); got != c.want {
			t.Errorf("Text(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

// Two different strings never look the same, and nothing invisible is left.
func FuzzText(f *testing.F) {
	seeds := []string{"", "a", "\x1b]0;x\a", "\u202e", `\u202e`, "\xff", `\xff`, "\U000e0041", "e\u0301", `\\`, "a\\\xff"}
	if len(seeds) == 0 {
		f.Fatal("no seeds")
	}
	for _, a := range seeds {
		for _, b := range seeds {
			f.Add(a, b)
		}
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := Text(a), Text(b)
		if (a == b) != (x == y) {
			t.Errorf("%q and %q are shown as %q and %q", a, b, x, y)
		}
		if !utf8.ValidString(x) {
			t.Errorf("Text(%q) is not UTF-8", a)
		}
		for _, r := range x {
			if !Visible(r) {
				t.Errorf("Text(%q) holds %U", a, r)
			}
		}
	})
}

func TestJSONKeepsTheData(t *testing.T) {
	for _, s := range []string{"plain", "世界", "\u009b31m \u202e \u200b \u2028 \x7f", "\U000e0041 \U000e0101", "\u0000\u001f"} {
		doc, err := json.MarshalIndent(map[string]string{"k": s}, "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		shown := JSON(doc)
		var back map[string]string
		if err := json.Unmarshal(shown, &back); err != nil || back["k"] != s {
			t.Errorf("JSON(%q) reads back as %q, %v", doc, back["k"], err)
		}
		for _, r := range string(shown) {
			if !Visible(r) && r != '\n' && r != '\t' {
				t.Errorf("JSON(%q) holds %U", doc, r)
			}
		}
	}
}

func TestWord(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain-1.0_x/y:z@1", "plain-1.0_x/y:z@1"},
		{"", "''"},
		{"two words", "'two words'"},
		{"it's", `'it'\''s'`},
		{"$HOME `id` ; rm", "'$HOME `id` ; rm'"},
		{"~root", "'~root'"},
		{"=ls", "'=ls'"},
		{"*", "'*'"},
		{"ä", "'ä'"},
		{"a\nb", `$'a\012b'`},
		{"\u202e'\\", `$'\342\200\256\'\\'`},
		{"\xff1", `$'\3771'`},
	} {
		if got := Word(c.in); got != c.want {
			t.Errorf("Word(%q) = %s, want %s", c.in, got, c.want)
		}
	}
}

func TestCommandReadsBack(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	words := []string{"a b", "it's", "$(id)", "", "new\nline", "\u202e", "\xff0", `back\slash`, "~", "=x", "-n", "!x", "a#b", "#c", "{a,b}"}
	out, err := exec.Command(bash, "-c", "printf '%s\\0' "+Command(words...)).Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Join(words, "\x00") + "\x00"; string(out) != want {
		t.Errorf("bash reads %q, want %q", out, want)
	}
}

func TestTableFits(t *testing.T) {
	table := Table{
		Columns: []Column{{Title: "NAME", Fixed: true}, {Title: "SIZE", Right: true}, {Title: "ABOUT"}, {Title: "SOURCE"}},
		Rows: [][]string{
			{"repo-facts", "12", strings.Repeat("about ", 12), "/a/very/long/" + strings.Repeat("path/", 20)},
			{"x", "1234567", "世界\u202e", ""},
		},
	}
	longest := func(width int) int {
		n := 0
		for _, l := range table.Lines(width) {
			n = max(n, Width(l))
		}
		return n
	}
	if n := longest(80); n > 80 || n < 70 {
		t.Errorf("at 80 cells the longest line has %d", n)
	}
	if n := longest(200); n > 200 || n <= 80 {
		t.Errorf("at 200 cells the longest line has %d", n)
	}
	whole := strings.Join(table.Lines(0), "\n")
	if strings.Contains(whole, "…") || !strings.Contains(whole, `世界\u202e`) {
		t.Errorf("without a terminal something was cut or not escaped:\n%s", whole)
	}
	for _, l := range table.Lines(20) {
		if !strings.HasPrefix(l, "NAME") && !strings.HasPrefix(l, "repo-facts") && !strings.HasPrefix(l, "x ") {
			t.Errorf("the fixed column was cut: %q", l)
		}
	}
}

func TestTablePaintsAfterEscaping(t *testing.T) {
	table := Table{
		Columns: []Column{{Title: "A"}, {Title: "B"}},
		Rows:    [][]string{{`back\slash`, "\x1b[2J"}},
		Style:   Style{Colour: true},
		Paint:   func(int, int) Mark { return Bad },
	}
	got := table.Lines(0)[1]
	want := "\x1b[1;31mback\\\\slash\x1b[0m  \x1b[1;31m\\u001b[2J\x1b[0m"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFormatEscapesEveryKindOfString(t *testing.T) {
	type name string
	got := Format("%s %s %v %d %s", "\x1b", name("\u202e"), []string{"\u200b"}, 7, Safe("\x1b[1m"))
	want := `\u001b \u202e [\u200b] 7 ` + "\x1b[1m"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Columns that wrap lose nothing and keep to their places; words that are longer than
// the column are broken.
func TestTableWraps(t *testing.T) {
	table := Table{
		Columns: []Column{{Title: "ID", Fixed: true}, {Title: "RISK", Wrap: true}, {Title: "WHAT", Wrap: true}},
		Rows: [][]string{
			{"a", "writes one file", "path=/a/very/long/path/without/a/space and more"},
			{"b", "none", "x"},
		},
	}
	got := strings.Join(table.Lines(34), "\n")
	want := strings.Join([]string{
		"ID  RISK            WHAT",
		"a   writes one      path=/a/very/l",
		"    file            ong/path/witho",
		"                    ut/a/space",
		"                    and more",
		"b   none            x",
	}, "\n")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	narrow := table.Lines(24)
	for _, l := range narrow {
		if Width(l) > 24 {
			t.Errorf("%d cells of 24: %s", Width(l), l)
		}
	}
	if text := strings.Join(narrow, "\n"); strings.Contains(text, "…") {
		t.Errorf("something was cut:\n%s", text)
	}
	if n := len(table.Lines(0)); n != 3 {
		t.Errorf("%d lines without a terminal, want 3", n)
	}
}

func TestWrap(t *testing.T) {
	got := Wrap("the quick brown fox jumps over the lazy dog", 15)
	for _, l := range got {
		if Width(l) > 15 {
			t.Errorf("%q is longer than 15 cells", l)
		}
	}
	if strings.Join(got, " ") != "the quick brown fox jumps over the lazy dog" {
		t.Errorf("words were lost: %q", got)
	}
}
