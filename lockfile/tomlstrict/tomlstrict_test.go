package tomlstrict

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// show writes a tree in one line.
func show(n *Node) string {
	switch n.Kind {
	case String:
		return fmt.Sprintf("%q", n.Text)
	case Integer:
		return fmt.Sprint(n.Integer)
	case Array:
		items := make([]string, len(n.Items))
		for i, item := range n.Items {
			items[i] = show(item)
		}
		return "[" + strings.Join(items, " ") + "]"
	case Table:
		members := make([]string, len(n.Members))
		for i, m := range n.Members {
			members[i] = m.Name + "=" + show(m.Value)
		}
		return "{" + strings.Join(members, " ") + "}"
	}
	return n.Kind.String()
}

func TestTrees(t *testing.T) {
	for text, want := range map[string]string{
		"":                        `{}`,
		"# only\n\n\t # comments": `{}`,
		"a = 1":                   `{a=1}`,
		" a\t=\t-0x1F # c\n":      `{a=!}`,
		"a = +1_000\nb = true\nc = 1.5e3\nd = inf":              `{a=1000 b=a boolean c=a float d=a float}`,
		"a = 2024-01-31T00:00:00Z\nb = 2024-01-31 07:00:00 # c": `{a=a date or time b=a date or time}`,
		`a = "x \"y\" \u00e9 \\"`:                               `{a="x \"y\" é \\"}`,
		`a = 'x "y" \u00e9 \'`:                                  `{a="x \"y\" \\u00e9 \\"}`,
		"a = \"\"\"\\\n  x \"\" y\"\"\"\"\"":                    `{a="x \"\" y\"\""}`,
		"a = '''x '' \\y'''":                                    `{a="x '' \\y"}`,
		`a = """"""`:                                            `{a=""}`,
		`a = ''''x'''''`:                                        `{a="'x''"}`,
		"a = [ # c\n 1, [2, []],\n 'x' , ]":                     `{a=[1 [2 []] "x"]}`,
		"a = {}\nb = { x = 1, y.z = [ { } ] }":                  `{a={} b={x=1 y={z=[{}]}}}`,
		"a = {\n x = 1, # c\n}":                                 `{a={x=1}}`,
		"a.b.c = 1\na.b.d = 2\na . 'b' . \"e\" = 3":             `{a={b={c=1 d=2 e=3}}}`,
		"[a]\nx=1\n[ a . b ]\ny=2\n[c.d]\n[c]\nz=3":             `{a={x=1 b={y=2}} c={d={} z=3}}`,
		"[[a]]\nx=1\n[a.b]\ny=2\n[[a]]\n[[a.c]]\n":              `{a=[{x=1 b={y=2}} {c=[{}]}]}`,
		"a.b = 1\n[a.c]\nx=1":                                   `{a={b=1 c={x=1}}}`,
		`"" = 1` + "\n'a b' = 2\n\"#\" = 3\n-_9 = 4":            `{=1 a b=2 #=3 -_9=4}`,
		"1 = 1\n2.3 = 4":                                        `{1=1 2={3=4}}`,
	} {
		if text == " a\t=\t-0x1F # c\n" {
			want = "" // numbers in other bases have no sign
		}
		for _, text := range []string{text, strings.ReplaceAll(text, "\n", "\r\n")} {
			d, err := Parse("x", []byte(text), 1<<10)
			switch {
			case want == "":
				if err == nil {
					t.Errorf("%q is read as %s", text, show(d.Root))
				}
			case err != nil:
				t.Errorf("%q: %v", text, err)
			case show(d.Root) != want:
				t.Errorf("%q is read as %s, want %s", text, show(d.Root), want)
			}
		}
	}
}

func TestFaults(t *testing.T) {
	for text, want := range map[string]string{
		"a":                                      `1:2: expected "=" after the name "a"`,
		"a = ":                                   "1:5: expected a value",
		"a = # c":                                "1:5: expected a value",
		"a = 1 b = 2":                            "1:7: expected the end of the line",
		"a = 'x' b = 2":                          "1:9: expected the end of the line",
		"a = [1 2]":                              `1:8: expected "," or "]" in the array`,
		"a = ['x' 'y']":                          `1:10: expected "," or "]" in the array that starts in line 1`,
		"a = [\n1,":                              `2:3: expected a value`,
		"a = [,]":                                "1:6: expected a value",
		"a = {x = 1":                             `1:11: expected "," or "}" in the table that starts in line 1`,
		"a = {,}":                                "1:6: expected a name",
		"a = {x}":                                `1:7: expected "=" after the name "x"`,
		"a = \"x":                                "1:5: the string is not closed on its line",
		"a = \"x\\":                              "1:5: the string is not closed on its line",
		"a = \"x\\\n\"":                          "1:5: the string is not closed on its line",
		"a = 'x\n'":                              "1:5: the string is not closed on its line",
		"a = \"\"\"x":                            "1:5: the string is not closed",
		"a = \"\"\"x\\":                          "1:5: the string is not closed",
		"a = '''x''":                             "1:5: the string is not closed",
		"a = \"\"\"x\"\"\"\"\"\"":                "1:14: expected the end of the line",
		"[a":                                     `1:3: expected "]" after the table's name`,
		"[a]]":                                   "1:4: expected the end of the line",
		"[[a]":                                   `1:4: expected "]]" after the table's name`,
		"[ [a]]":                                 "1:3: expected a name",
		"[]":                                     "1:2: expected a name",
		"[a.]":                                   "1:4: expected a name",
		"a..b = 1":                               "1:3: expected a name",
		"ключ = 1":                               "1:1: expected a name",
		"'a\nb' = 1":                             "1:1: the quoted name is not closed on its line",
		"'a":                                     "1:1: the quoted name is not closed on its line",
		`"a\"b" = 1`:                             "1:3: names are written without escapes",
		"\"\"\"a\"\"\" = 1":                      `1:3: expected "=" after the name ""`,
		"a = 1\na = 2":                           `2:1: "a" is already defined in line 1`,
		"a = 1\n\"a\" = 2":                       `2:1: "a" is already defined in line 1`,
		"[a]\n[a]":                               `2:2: "a" is already defined in line 1`,
		"[a.b]\n[a]\n[a]":                        `3:2: "a" is already defined in line 2`,
		"[a]\nb=1\n[a.b]":                        `3:4: "b" is already defined in line 2`,
		"[[a]]\n[a]":                             `2:2: "a" is already defined in line 1`,
		"[a]\n[[a]]":                             `2:3: "a" is already defined in line 1`,
		"a = []\n[[a]]":                          `2:3: "a" is already defined in line 1`,
		"a = [{}]\n[a.b]":                        `2:2: "a" is already defined in line 1`,
		"a = {}\n[a.b]":                          `2:2: "a" is already defined in line 1`,
		"a = {}\na.b = 1":                        `2:1: "a" is already defined in line 1`,
		"a = {b.c = 1, b = 2}":                   `1:15: "b" is already defined in line 1`,
		"a.b = 1\na.b.c = 2":                     `2:3: "b" is already defined in line 1`,
		"a.b = 1\n[a]":                           `2:2: "a" is already defined in line 1`,
		"[a.b.c]\nz=9\n[a]\nb.c.t = 1":           `4:1: "b" is already defined in line 1`,
		"[a.b]\n[a]\nb.c = 1":                    `3:1: "b" is already defined in line 1`,
		"[[a]]\nb.c=1\n[a.b]":                    `3:4: "b" is already defined in line 2`,
		"a = 01":                                 "1:5: ",
		"a = 1979-13-01":                         "1:5: ",
		"a = yes":                                "1:5: ",
		"a = \"\\x\"":                            "1:",
		"a = 9223372036854775808":                "1:5: ",
		"a = 1 # \x7f":                           "1:9: control character 0x7f",
		"a = 1 # \u0085":                         "1:9: invisible control character U+0085",
		"a = \"\u2066\"":                         "1:6: invisible control character U+2066",
		"a = \"\ufeff\"":                         "1:5: the string holds the invisible character U+FEFF",
		"a = \"\\u2028\"":                        "1:5: the string holds the invisible character U+2028",
		"a = '''x\ny'''":                         "1:5: the string holds the invisible character U+000A",
		"a = [\"ok\", \"\\u001b\"]":              "1:12: the string holds the invisible character U+001B",
		"a = 1\n>>>>>>> x":                       "2:1: the file holds the markers of an unresolved merge conflict",
		"<<<<<<<":                                "1:1: the file holds the markers of an unresolved merge conflict",
		strings.Repeat("#", 1025):                "1:1: the file has 1025 bytes; at most 1024 are read",
		"é = [[[[[[[[[[[[[[[[[":                  "1:1: expected a name",
		"a = " + strings.Repeat("[", 16):         "1:21: nested deeper than 16 levels",
		"[" + strings.Repeat("a.", 16) + "a]":    "1:34: nested deeper than 16 levels",
		"a = " + strings.Repeat("{a=", 16) + "{": "1:53: nested deeper than 16 levels",
		"a = " + strings.Repeat("{a.a=", 8) + "{}": "1:45: nested deeper than 16 levels",
	} {
		_, err := Parse("x", []byte(text), 1<<10)
		var faults Faults
		if !errors.As(err, &faults) || len(faults) == 0 {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := faults[0].Error(); !strings.HasPrefix(got, "x:"+want) {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

func TestMessagesAreBounded(t *testing.T) {
	for _, text := range []string{"a = " + strings.Repeat("9", 1<<16), strings.Repeat("a", 1<<16)} {
		_, err := Parse("x", []byte(text), 1<<17)
		if err == nil || len(err.Error()) > 500 {
			t.Errorf("the message has %d bytes", len(err.Error()))
		}
	}
}

func TestSpans(t *testing.T) {
	const text = "[ a . \"b\" ] # c\nx.y = \"é\" # c\nz = { v = [1, 2 ] , w = true }\n"
	d, err := Parse("x", []byte(text), 1<<10)
	if err != nil {
		t.Fatal(err)
	}
	b := d.Root.Member("a").Value.Member("b")
	y := b.Value.Member("x").Value.Member("y")
	z := b.Value.Member("z")
	v := z.Value.Member("v")
	for _, c := range []struct {
		start, end int
		want       string
	}{
		{b.Value.Start, b.Value.End, `[ a . "b" ]`},
		{b.NameStart, b.NameEnd, `"b"`},
		{y.Key, y.NameEnd, "x.y"},
		{y.NameStart, y.NameEnd, "y"},
		{y.Value.Start, y.Value.End, `"é"`},
		{z.Value.Start, z.Value.End, "{ v = [1, 2 ] , w = true }"},
		{v.Value.Start, v.Value.End, "[1, 2 ]"},
		{v.Value.Items[1].Start, v.Value.Items[1].End, "2"},
	} {
		if got := text[c.start:c.end]; got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	if !b.Value.Header() || b.Value.Inline() || !z.Value.Inline() || z.Value.Header() || d.Root.Member("a").Value.Header() {
		t.Error("tables are of another form than they are written in")
	}
	if line, column := d.Position(z.Value.Member("w").Key); line != 3 || column != 21 {
		t.Errorf("w stands in %d:%d", line, column)
	}
}

func FuzzParse(f *testing.F) {
	seeds := []string{
		"a = 1\n[b.c]\nd = ['x', \"y\"]\n[[e]]\nf = { g.h = 1979-05-27 }\n", "a = \"\"\"x\\\n\"\"\"", "'' = ''''a'''''", "a.b = 1\n[a.c]\n",
	}
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	if len(seeds) == 0 {
		f.Fatal("no seeds")
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := Parse("x", data, 1<<16)
		if err != nil {
			var faults Faults
			if !errors.As(err, &faults) || len(faults) == 0 || len(faults) > MaxFaults {
				t.Fatal(err)
			}
			for _, fault := range faults {
				if fault.Line < 1 || fault.Column < 1 || fault.Line > strings.Count(string(data), "\n")+1 {
					t.Fatalf("no such position: %v", fault)
				}
			}
			return
		}
		check(t, data, d.Root)
	})
}

// check: every node is known and its span lies in the text.
func check(t *testing.T, data []byte, n *Node) {
	t.Helper()
	if n.Kind == 0 || n.Start < 0 || n.End < n.Start || n.End > len(data) {
		t.Fatalf("node %+v", n)
	}
	for _, item := range n.Items {
		check(t, data, item)
	}
	for _, m := range n.Members {
		if m.Key > m.NameStart || m.NameStart >= m.NameEnd || n.Member(m.Name) != m {
			t.Fatalf("member %+v", m)
		}
		check(t, data, m.Value)
	}
}
