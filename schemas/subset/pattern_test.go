package subset

import (
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// patterns, and what the refusal says; "" is in the subset.
var patterns = []struct{ text, says string }{
	{`^$`, ""},
	{`^abc$`, ""},
	{`^[a-z0-9]+(\.[a-z0-9\-]+)+$`, ""},
	{`^[a-z][a-z0-9._\-]{1,63}$`, ""},
	{`^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(?:\-[0-9A-Za-z.\-]+)?(?:\+[0-9A-Za-z.\-]+)?$`, ""},
	{`^sha256:[A-Fa-f0-9]{64}$`, ""},
	{`^(a|b|cd)?x{2,}$`, ""},
	{`^[^\n]*$`, ""},
	{`^[^/]+(/[^/]+)*$`, ""},
	{`^[a-z]([a-z0-9\-]{0,61}[a-z0-9])?$`, ""},
	{`^[a-z0-9]+(\-+[a-z0-9]+)*$`, ""},
	{`^[a-z0-9]+(\.[a-z0-9]+)*$`, ""},
	{`^[a-z][a-z0-9\-]{0,61}[a-z0-9]$`, ""},
	{`^[äöüß]+$`, ""},
	{`^[\x20-\x7e]*$`, ""},
	{`^a[$.*+?(){}]b$`, ""},
	{`^\$\^\.\*\+\?\(\)\[\]\{\}\|\\\/\-\n\r\t\f\v$`, ""},
	{`^[\[\]\\\^\-\&\~\|]+$`, ""},
	{`^a{1000}$`, "more than 512"},
	{`^(a{1,2}){2}$`, ""},
	{`^(?:(?:(a)))$`, ""},
	{`^#&~ _"'<>=!@%,;:` + "`" + `$`, ""},

	{`abc`, `begins with "^"`},
	{`^abc`, `begins with "^"`},
	{`abc$`, `begins with "^"`},
	{`^a|b$`, "alternatives stand in a group"},
	{`^a$|^b$`, `has neither elsewhere`},
	{`^a$b$`, `has neither elsewhere`},
	{`^a^b$`, `"\^"`},
	{`^a\$`, `begins with "^" and ends with "$"`},
	{`^(a$`, `"(" without ")"`},
	{`^(a$)$`, `"(" without ")"`},
	{`^a)$`, `")" without "("`},
	{`^()$`, "an alternative is empty"},
	{`^(a|)$`, "an alternative is empty"},
	{`^(?i:a)$`, `only "(…)"`},
	{`^(?=a)$`, `only "(…)"`},
	{`^(?!a)$`, `only "(…)"`},
	{`^(?<=a)$`, `only "(…)"`},
	{`^(?P<n>a)$`, `only "(…)"`},
	{`^(?<n>a)$`, `only "(…)"`},
	{`^(?>a)$`, `only "(…)"`},
	{`^(?i)a$`, `only "(…)"`},
	{`^(a)\1$`, "backreference"},
	{`^\0$`, "backreference, or an octal"},
	{`^\d$`, "write the class"},
	{`^\w+$`, "write the class"},
	{`^\S$`, "write the class"},
	{`^a\b$`, "write the class"},
	{`^\pL$`, "write the class"},
	{`^\p{Greek}$`, "write the class"},
	{`^\u0041$`, "not in the subset"},
	{`^\Aa\z$`, "not in the subset"},
	{`^\Qa\E$`, "not in the subset"},
	{`^\_$`, "not in the subset"},
	{`^\é$`, "not in the subset"},
	{`^\x4$`, "two hexadecimal digits"},
	{`^\x{41}$`, "two hexadecimal digits"},
	{`^a\`, "ends after a backslash"},
	{`^.*$`, "write a class"},
	{`^a**$`, "a repeat follows a repeat"},
	{`^a*?$`, "a repeat follows a repeat"},
	{`^a++$`, "a repeat follows a repeat"},
	{`^a{2}{3}$`, "a repeat follows a repeat"},
	{`^*$`, "a repeat follows nothing"},
	{`^(+a)$`, "a repeat follows nothing"},
	{`^a{,3}$`, "a repeat is {n}"},
	{`^a{$`, "a repeat is {n}"},
	{`^a{a}$`, "a repeat is {n}"},
	{`^a{1, 2}$`, "a repeat is {n}"},
	{`^a{01}$`, "a repeat is {n}"},
	{`^a{2,1}$`, "the wrong way round"},
	{`^a{0}$`, "at most 0"},
	{`^a{1001}$`, "more than 1000"},
	{`^a{99999999999999999999}$`, "more than 1000"},
	{`^(a{40}){40}$`, "more than 1000"},
	{`^(a*)*$`, "what can be empty"},
	{`^(a?){3}$`, "what can be empty"},
	{`^a]$`, `"\]"`},
	{`^a}$`, `"\}"`},
	{`^[]$`, "an empty class"},
	{`^[]a]$`, "an empty class"},
	{`^[^]$`, "an empty class"},
	{`^[a$`, `"[" without "]"`},
	{`^[z-a]$`, "the wrong way round"},
	{`^[a-]$`, `"\]"`},
	{`^[-a]$`, `"\-"`},
	{`^[a-z-[aeiou]]$`, `"\-"`},
	{`^[[:alpha:]]$`, `"\["`},
	{`^[a&&b]$`, `"\&"`},
	{`^[a~~b]$`, `"\~"`},
	{`^[a||b]$`, `"\|"`},
	{`^[\d]$`, "write the class"},
	{`^[^a]$`, "a negated class"},
	{`^[^a]?$`, "a negated class"},
	{`^[^a]{2}$`, "a negated class"},
	{`^[^a]{2,}$`, "a negated class"},
	{`^😀$`, "not one character in every language"},
	{`^[a-😀]$`, "not one character in every language"},
	{"^[a-\ue000]$", "across the surrogates"},
	{"^a\u200b$", ""},
	{"^a\u2028$", "control or invisible"},
	{"^a\n$", "control or invisible"},
	{strings.Repeat("^", 513), "at most 512 characters"},
	{"^" + strings.Repeat("(", 33) + "a" + strings.Repeat(")", 33) + "$", "groups inside each other"},

	{`^(a+)+$`, "the next character must decide"},
	{`^(a|a)*$`, "the next character must decide"},
	{`^(a|ab)*c$`, "the next character must decide"},
	{`^a*a*$`, "the next character must decide"},
	{`^a*ab$`, "the next character must decide"},
	{`^[a-z]*[a-z0-9]$`, "the next character must decide"},
	{`^([a-z]+[0-9]*)+x$`, "the next character must decide"},
	{`^(a|b)*b$`, "the next character must decide"},
	{`^(a+b?)+$`, "the next character must decide"},
	{`^((ab)+)+$`, "the next character must decide"},
	{`^(x(a+))+$`, ""},
	{`^a{0,30}a{0,30}$`, ""},
	{`^a{0,30}a{0,30}a{0,30}$`, "more than 64 ways"},
	{`^(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)$`, ""},
	{`^(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)$`, "more than 64 ways"},
	{`^(a|aa|aaa){9}$`, "more than 64 ways"},
	{"^" + classesFrom(64) + "$", ""},
	{"^" + classesFrom(65) + "$", "more than 64 different"},
}

func classesFrom(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteRune(rune(0x4e00 + i))
	}
	return b.String()
}

func TestPatterns(t *testing.T) {
	for _, p := range patterns {
		re, positions, err := compilePattern(p.text)
		switch {
		case p.says == "" && (err != nil || re == nil || positions > MaxPositions):
			t.Errorf("%.80s: %v", p.text, err)
		case p.says != "" && (err == nil || !strings.Contains(err.Error(), p.says)):
			t.Errorf("%.80s: %v, want %q", p.text, err, p.says)
		}
	}
}

// The worst patterns that are accepted or refused are judged quickly.
func TestPatternTime(t *testing.T) {
	for _, text := range []string{
		`^[a-z]{0,512}$`, `^([a-z]{0,5}){100}$`, "^" + strings.Repeat("a?", 250) + "$", "^(" + strings.Repeat("a|", 200) + "a)*$", `^((((((a{1,2}){1,2}){1,2}){1,2}){1,2}){1,2}){1,2}$`,
		`^(a{1,900}|b{1,900}){200}$`, `^((((((((((a{1,9}){1,9}){1,9}){1,9}){1,9}){1,9}){1,9}){1,9}){1,9}){1,9})$`,
	} {
		begin := time.Now()
		_, _, err := compilePattern(text)
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("%.60s: %v (%v)", text, took, err)
		}
	}
}

// generate makes a random pattern, often in the subset, and writes a string that it
// may well match.
func generate(r *rand.Rand, depth int) (pattern, example string) {
	var p, s strings.Builder
	for range 1 + r.IntN(3) {
		var atom, text string
		switch k := r.IntN(10); {
		case k < 3:
			c := string("abcXYZ019 _éß-/"[r.IntN(13)])
			if c == "\xc3" || c == "\xa9" {
				c = "é"
			}
			atom, text = c, c
		case k < 5:
			c := string(`.*+?()[]{}|\^$-`[r.IntN(15)])
			atom, text = `\`+c, c
		case k < 8 || depth == 0:
			sets := []struct{ class, in string }{{"[a-c]", "abc"}, {"[0-9]", "0189"}, {`[\-_.]`, "-_."}, {"[à-ÿ]", "éü"}, {`[\x41-\x5a]`, "AZM"}, {`[$(*]`, "$(*"}, {`[^a-m]`, "nz0\n😀"}}
			set := sets[r.IntN(len(sets))]
			in := []rune(set.in)
			atom, text = set.class, string(in[r.IntN(len(in))])
			if strings.HasPrefix(atom, "[^") {
				atom += "+"
				p.WriteString(atom)
				s.WriteString(text)
				continue
			}
		default:
			a, x := generate(r, depth-1)
			b, y := generate(r, depth-1)
			atom, text = "("+a+"|"+b+")", x
			if r.IntN(2) == 0 {
				text = y
			}
			if r.IntN(3) == 0 {
				atom = "(?:" + a + ")"
				text = x
			}
		}
		switch r.IntN(8) {
		case 0:
			atom += "*"
			text = strings.Repeat(text, r.IntN(3))
		case 1:
			atom += "+"
			text = strings.Repeat(text, 1+r.IntN(3))
		case 2:
			atom += "?"
		case 3:
			atom += "{1,3}"
			text = strings.Repeat(text, 1+r.IntN(4))
		case 4:
			atom += "{2}"
			text = strings.Repeat(text, 2)
		}
		p.WriteString(atom)
		s.WriteString(text)
	}
	return p.String(), s.String()
}

// TestPatternsInPython holds that Python's re reads the patterns of the subset as RE2
// does: the same strings match, and none takes long.
func TestPatternsInPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skipf("NOTE: patterns were not compared with Python's: %v", err)
	}
	type question struct {
		Pattern string   `json:"pattern"`
		Strings []string `json:"strings"`
	}
	var questions []question
	for _, p := range patterns {
		if p.says == "" {
			questions = append(questions, question{p.text, []string{"", "a", "abc", "abc\n", "a.b", "a-b", "1.2.3-x+y", strings.Repeat("a", 5000) + "!", strings.Repeat("a/", 3000)}})
		}
	}
	r := rand.New(rand.NewPCG(4, 1))
	for range 2000 {
		body, example := generate(r, 2)
		if _, _, err := compilePattern("^" + body + "$"); err != nil {
			continue
		}
		questions = append(questions, question{"^" + body + "$", []string{example, example + "a", example + "\n", strings.ToUpper(example), example + example, ""}})
	}
	if len(questions) < 500 {
		t.Fatalf("only %d patterns", len(questions))
	}
	in, err := json.Marshal(questions)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-I", "-W", "error", "-c", `
import json, re, sys
print(json.dumps([[re.fullmatch(q["pattern"][1:-1], s) is not None for s in q["strings"]] for q in json.load(sys.stdin)]))`)
	cmd.Stdin = strings.NewReader(string(in))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	var answers [][]bool
	if err := json.Unmarshal(out, &answers); err != nil || len(answers) != len(questions) {
		t.Fatalf("%v, %d answers", err, len(answers))
	}
	matched, refused := 0, 0
	for i, q := range questions {
		re, _, err := compilePattern(q.Pattern)
		if err != nil {
			t.Fatal(err)
		}
		for j, s := range q.Strings {
			if got := re.MatchString(s); got != answers[i][j] {
				t.Errorf("%s on %.60q: %v, in Python %v", q.Pattern, s, got, answers[i][j])
			} else if got {
				matched++
			} else {
				refused++
			}
		}
	}
	if matched < 500 || refused < 500 {
		t.Errorf("%d matched, %d did not", matched, refused)
	}
	t.Logf("%d patterns, %d strings match, %d do not", len(questions), matched, refused)
}
