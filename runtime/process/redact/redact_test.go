package redact

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// The secrets are put together here so that no scanner of this repository takes
// them for real ones.
var (
	alnum36 = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
	ghp     = "ghp" + "_" + alnum36
	pat     = "github" + "_pat_" + alnum36 + "_" + alnum36
	glpat   = "glpat" + "-" + "a1B2c3D4e5F6g7H8i9J0"
	xoxb    = "xoxb" + "-123456789012-123456789012-" + "a1B2c3D4e5F6"
	akia    = "AKIA" + "IOSFODNN7EXAMPLE"
	awsKey  = "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY"
	aiza    = "AIza" + "SyA1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q"
	npm     = "npm" + "_" + alnum36
	pypi    = "pypi" + "-AgEIcHlwaS5vcmc" + alnum36
	stripe  = "sk" + "_live_" + "a1B2c3D4e5F6g7H8i9J0"
	jwt     = "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0." + "dBjftJeZ4CVPmB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	sk      = "sk" + "-ant-api03-" + alnum36
)

// Each case is a line and what must not be left of it; the rest must be.
var secretCases = []struct {
	line   string
	secret string // "" for a line that must stay as it is
	rest   []string
}{
	// Tokens by shape.
	{"cloning with " + ghp + " now", ghp, []string{"cloning with ", " now"}},
	{"x" + pat, pat, nil},
	{"GH=" + strings.Replace(ghp, "ghp", "ghs", 1) + ";", strings.Replace(ghp, "ghp", "ghs", 1), nil},
	{"remote: " + glpat, glpat, []string{"remote: "}},
	{"(" + xoxb + ")", xoxb, []string{"(", ")"}},
	{"POST https://hooks.slack.com/services/T000/B000/" + "a1B2c3D4e5F6", "a1B2c3D4e5F6", []string{"POST https://hooks.slack.com/services/"}},
	{"https://discord.com/api/webhooks/123456/" + alnum36, alnum36, nil},
	{"key " + akia + " of", akia, []string{"key ", " of"}},
	{"aws " + akia + " " + awsKey + " eu", awsKey, []string{"aws ", " eu"}},
	{"aws_secret_access_key = " + awsKey, awsKey, []string{"aws_secret_access_key = "}},
	{"maps?key=" + aiza + "&q=1", aiza, []string{"maps?key=", "&q=1"}},
	{"GOCSPX" + "-a1B2c3D4e5F6g7H8i9J0k1", "a1B2c3D4e5F6g7H8i9J0k1", nil},
	{npm, npm, nil},
	{"upload " + pypi, pypi, []string{"upload "}},
	{stripe, stripe, nil},
	{"rk" + "_test_" + "a1B2c3D4e5F6g7", "a1B2c3D4e5F6g7", nil},
	{"got " + jwt + ".", jwt, []string{"got "}},
	{"model key " + sk, sk, []string{"model key "}},
	{"SG" + ".a1B2c3D4e5F6g7H8i9J0k1." + alnum36, alnum36, nil},
	{"dop" + "_v1_" + strings.Repeat("a1", 32), strings.Repeat("a1", 32), nil},
	{"hf" + "_" + alnum36, alnum36, nil},
	{"hvs" + "." + alnum36, alnum36, nil},
	{"AGE-SECRET-KEY-1" + strings.ToUpper(alnum36), strings.ToUpper(alnum36), nil},
	{"GET /blob?sv=2&sig=a1B2%2Fc3D4e5F6g7&se=x", "a1B2%2Fc3D4e5F6g7", []string{"&se=x"}},
	{"X-Amz-Date=1&X-Amz-Signature=0123456789abcdef", "0123456789abcdef", []string{"X-Amz-Date=1&"}},

	// Authorization.
	{"Authorization: Bearer abc.def.ghi", "abc.def.ghi", []string{"Authorization: "}},
	{"> authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz", []string{"> authorization: "}},
	{`curl -H 'Authorization: token abc def' https://x.test/y`, "abc def", []string{"curl -H '", "' https://x.test/y"}},
	{`{"Authorization":"Bearer abc","n":1}`, "abc", []string{`{"Authorization":"`, `","n":1}`}},
	{"map[Authorization:[Bearer abc] Accept:[x]]", "Bearer abc", nil},
	{"Proxy-Authorization: Negotiate YII", "YII", nil},
	{"Cookie: session=1; other=2", "other=2", []string{"Cookie: "}},
	{"Set-Cookie: a=b; Path=/", "a=b", nil},
	{"sent Bearer 4f1c9d0a77 ok", "4f1c9d0a77", []string{"sent Bearer ", " ok"}},

	// Assignments.
	{"password=hunter2 user=bob", "hunter2", []string{"password=", " user=bob"}},
	{"PASSWORD: correct horse battery", "correct horse battery", []string{"PASSWORD: "}},
	{"password = hunter2", "hunter2", []string{"password = "}},
	{`{"password":"hunter2","user":"bob"}`, "hunter2", []string{`{"password":"`, `","user":"bob"}`}},
	{`{"password": "hunt\"er2", "user":"bob"}`, `er2`, []string{`"user":"bob"}`}},
	{`msg="{\"password\":\"hunter2\",\"user\":\"bob\"}"`, "hunter2", []string{`\",\"user\":\"bob\"}"`}},
	{`{'passwd': 'hunter2', 'u': 'bob'}`, "hunter2", []string{`', 'u': 'bob'}`}},
	{`passwd: b'hunter2' x`, "hunter2", []string{" x"}},
	{`"secret" => "s3 cr3t", 1`, "s3 cr3t", []string{`"secret" => "`, `", 1`}},
	{"secret := s3cr3t", "s3cr3t", nil},
	{`export DB_PASSWORD="hunter 2"`, "hunter 2", []string{`export DB_PASSWORD="`, `"`}},
	{"DB_PASS=hunter2", "hunter2", nil},
	{"mysql --password hunter2 -u bob", "hunter2", []string{"mysql --password "}},
	{"tool --api-key=abc123 run", "abc123", []string{"tool --api-key=", " run"}},
	{"tool -token abc123 run", "abc123", []string{"tool -token ", " run"}},
	{"tool --pass hunter2", "hunter2", nil},
	{"api_key: abc123, n: 1", "abc123", []string{"api_key: ", " n: 1"}},
	{"apiKey=abc123", "abc123", nil},
	{"APIKEY abc, x-api-key: abc123", "abc123", nil},
	{"accessToken: abc123 expires: 5", "abc123", []string{" expires: 5"}},
	{"npm_config__authToken=abc123", "abc123", nil},
	{"//registry.test/:_authToken=abc123", "abc123", []string{"//registry.test/:_authToken="}},
	{"//registry.test/:_auth=abc123", "abc123", nil},
	{"clientSecret=abc123", "abc123", nil},
	{"token: Bearer abc", "abc", nil},
	{"tokenId=abc123", "abc123", nil},
	{"SharedAccessKey=abc123=;x", "abc123", nil},
	{"AccountKey=abc123==;EndpointSuffix=x", "abc123==", nil},
	{"Server=x;Pwd=hunter2;", "hunter2", []string{"Server=x;Pwd="}},
	{"<password>hunter2</password><n>1</n>", "hunter2", []string{"<password>", "</password><n>1</n>"}},
	{"machine x.test login bob password hunter2", "hunter2", []string{"machine x.test login bob password "}},
	{"\x1b[31mpassword\x1b[0m=\x1b[32mhunter2\x1b[0m", "hunter2", []string{"\x1b[31mpassword"}},
	{"spring.datasource.password=hunter2", "hunter2", nil},
	{"https://x.test/cb?access_token=abc123&state=1", "abc123", []string{"https://x.test/cb?access_token="}},
	{"credentials: {user bob}", "bob", nil},
	{`password: "unclosed and cut`, "unclosed and cut", nil},
	{`password='''a'b'''`, "a'b", nil},

	// URLs.
	{"fetch https://bob:hunter2@git.test/x.git", "hunter2", []string{"fetch https://", "@git.test/x.git"}},
	{"postgres://u:p@ss/w?rd@db.test:5432/x", "p@ss/w?rd", []string{"@db.test:5432/x"}},
	{"https://a1b2c3d4e5f6@git.test/x", "a1b2c3d4e5f6", []string{"@git.test/x"}},
	{"redis://:hunter2@[::1]:6379/0", "hunter2", []string{"@[::1]:6379/0"}},

	// Blocks on one line.
	{"key -----BEGIN RSA PRIVATE KEY-----\\nMIIE\\n-----END RSA PRIVATE KEY-----\\n done", "MIIE", []string{"key ", " done"}},
	{"-----BEGIN OPENSSH PRIVATE KEY-----", "BEGIN", nil},

	// Harmless lines stay as they are.
	{line: ""},
	{line: "compiling 3 packages in 1.2s"},
	{line: "--- PASS: TestTokens (0.00s)"},
	{line: "Unexpected token } in JSON at position 5"},
	{line: "max_tokens: 4096, tokenizer=bpe"},
	{line: "password incorrect"},
	{line: "has_token=true password: null"},
	{line: "secret=<nil> n=1"},
	{line: "bearer authentication is required; basic support only"},
	{line: "https://host.test:8080/path@2x.png"},
	{line: "http://localhost:4873/@scope/pkg ssh://git@host.test/x"},
	{line: "http://[::1]:80/a@b"},
	{line: "sha1 2fd4e1c67a2d28fced849ee1bb76e7391b93eb12 of aws-sdk"},
	{line: "bypass=1 compass: north secretary=alice"},
	{line: "task-force-of-many-people-in-one-word"},
	{line: "BEGIN transaction; END transaction"},
	{line: "/run/secrets/db: no such file"},
	{line: "grüße, 世界 — ok"},
}

func TestLine(t *testing.T) {
	for _, c := range secretCases {
		got := Line(c.line)
		if c.secret == "" {
			if got != c.line {
				t.Errorf("harmless line was changed:\n  %q\n  %q", c.line, got)
			}
			continue
		}
		if strings.Contains(got, c.secret) || !strings.Contains(got, Mask) {
			t.Errorf("secret is left:\n  %q\n  %q", c.line, got)
		}
		for _, rest := range c.rest {
			if !strings.Contains(got, rest) {
				t.Errorf("%q is gone:\n  %q\n  %q", rest, c.line, got)
			}
		}
	}
}

// TestEveryRuleFires holds that the table has no dead row.
func TestEveryRuleFires(t *testing.T) {
	covered := map[string]bool{
		"Terraform Cloud token": len(appendTokens(nil, "a1b2c3d4e5f6g7.atlasv1."+alnum36, "a1b2c3d4e5f6g7.atlasv1."+alnum36)) > 0,
		"Docker token":          Line("dckr"+"_pat_"+alnum36) == Mask,
		"Shopify token":         Line("shpat"+"_"+strings.Repeat("0a", 16)) == Mask,
	}
	for _, c := range secretCases {
		for i := range rules {
			r := &rules[i]
			lower := lowerASCII(c.line)
			if c.secret != "" && r.hinted(lower) && r.pattern.get().MatchString(c.line) {
				covered[r.name] = true
			}
		}
	}
	for i := range rules {
		r := &rules[i]
		if !covered[r.name] {
			t.Errorf("no case for rule %q", r.name)
		}
		for _, h := range r.hints {
			if h != strings.ToLower(h) {
				t.Errorf("%s: hint %q is not lower-case", r.name, h)
			}
		}
	}
	for _, k := range keys {
		name := strings.TrimPrefix(k.name, "_")
		if k.name[0] == '_' {
			name = "x" + k.name
		}
		for _, form := range []string{"%s=zq9Zq", "%s = zq9Zq", `"%s":"zq9Zq"`, "--%s=zq9Zq"} {
			if k.name == "pass" && strings.Contains(form, ":") {
				continue
			}
			line := fmt.Sprintf(form, name)
			if got := Line(line); strings.Contains(got, "zq9Zq") {
				t.Errorf("key %q: %q is left", k.name, got)
			}
		}
	}
}

// TestSplit holds that any cut at or after blindBytes into a token leaves a
// recognisable head: 256 bytes, as the reader of stderr relies on.
func TestSplit(t *testing.T) {
	long := strings.Repeat(alnum36, 100)
	for _, s := range []string{ghp + long, glpat + long, pypi + long, jwt + long, npm + long, stripe + long, sk + long,
		"password=" + long, `"token":"` + long, "Authorization: Bearer " + long, "https://u:" + long} {
		for _, cut := range []int{256, 300, 2048} {
			got := Line(s[:cut])
			if strings.HasPrefix(s, "https") {
				continue // without its "@" a user information is no user information
			}
			if strings.Contains(got, alnum36) {
				t.Errorf("cut at %d: %.60q… leaves %.80q…", cut, s, got)
			}
		}
	}
}

// TestBounded holds that no line of the length that is held costs much: a
// thousand of them may have to be read out at once.
func TestBounded(t *testing.T) {
	for _, unit := range []string{"password", "password=", "password: ", "-----BEGIN ", "BEGIN ", "://", "://a:b@", "://a:",
		`"password":"`, `\"`, "eyJ", "eyJhbGciOiJIUzI1NiJ9.", "Bearer ", "A1a", "cookie:", "<token>", "token\x1b[", `secret="\`, "akia "} {
		line := strings.Repeat(unit, 4096/len(unit))
		best := time.Hour
		for range 3 {
			began := time.Now()
			Line(line)
			best = min(best, time.Since(began))
		}
		if best > 50*time.Millisecond {
			t.Errorf("%q repeated takes %v", unit, best)
		}
	}
}

func TestBlocks(t *testing.T) {
	body := strings.Repeat("MIIEowIBAAKCAQEA", 4)
	for _, c := range []struct {
		name   string
		lines  []string
		inside []bool
	}{
		{"pem", []string{"a", "-----BEGIN RSA PRIVATE KEY-----", body, "", body, "-----END RSA PRIVATE KEY-----", "b"},
			[]bool{false, false, true, true, true, true, false}},
		{"with a log prefix", []string{"12:00 -----BEGIN PRIVATE KEY-----", "12:00 " + body, "12:00 -----END PRIVATE KEY-----", "12:00 b"},
			[]bool{false, true, true, false}},
		{"end and begin on one line", []string{"-----BEGIN A-----", body, "-----END A----------BEGIN B-----", body, "-----END B-----", "b"},
			[]bool{false, true, true, true, true, false}},
		{"one line", []string{"-----BEGIN A-----x-----END A-----", "b"}, []bool{false, false}},
		{"ssh2", []string{"---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----", body, "---- END SSH2 ENCRYPTED PRIVATE KEY ----", "b"},
			[]bool{false, true, true, false}},
		{"putty", []string{"Private-Lines: 2", body, body, "Private-MAC: 0"}, []bool{false, true, true, false}},
		{"no block", []string{"BEGIN work", "x"}, []bool{false, false}},
	} {
		var b Blocks
		for i, line := range c.lines {
			if got := b.Next([]byte(line)); got != c.inside[i] {
				t.Errorf("%s: line %d %q: inside = %v", c.name, i, line, got)
			}
		}
	}
	var b Blocks
	b.Next([]byte("-----BEGIN X-----"))
	n := 0
	for b.Next([]byte("prose")) {
		n++
	}
	if n != maxBlockLines {
		t.Errorf("an unclosed block hides %d lines", n)
	}
}

func FuzzLine(f *testing.F) {
	n := 0
	for _, c := range secretCases {
		f.Add(c.line)
		n++
	}
	if n == 0 {
		f.Fatal("no seeds")
	}
	f.Fuzz(func(t *testing.T, line string) {
		line = strings.ToValidUTF8(line, "?")
		got := Line(line)
		if !utf8.ValidString(got) {
			t.Fatalf("%q gives invalid UTF-8 %q", line, got)
		}
		if len(got) > len(line)*(1+len(Mask)) {
			t.Fatalf("%d bytes became %d", len(line), len(got))
		}
		// A secret on a word of its own is found whatever surrounds it, unless
		// the surroundings are themselves taken for a secret.
		planted := Line(line + " " + ghp + " " + line)
		if strings.Contains(planted, ghp) {
			t.Fatalf("secret is left in %q", planted)
		}
		new(Blocks).Next([]byte(line))
	})
}

func BenchmarkLine(b *testing.B) {
	for _, line := range []string{"2024-05-01T12:00:00Z INFO compiled package github.com/x/y in 120ms", `level=info user=bob password="hunter2" n=1`} {
		b.Run(line[:10], func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			for b.Loop() {
				Line(line)
			}
		})
	}
}
