package ijson_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/schemas/ijson"
)

// refused returns the *Error of a refused document; it fails the test if the
// document was accepted or the error is of another type.
func refused(t *testing.T, err error) *ijson.Error {
	t.Helper()
	var e *ijson.Error
	if !errors.As(err, &e) {
		t.Fatalf("error is %v (%T), want an *ijson.Error", err, err)
	}
	if e.Line < 1 || e.Column < 1 || e.Offset < 0 || e.Code == "" || e.Message == "" {
		t.Errorf("incomplete error %#v", e)
	}
	return e
}

func nested(open, inner, close string, n int) string {
	return strings.Repeat(open, n) + inner + strings.Repeat(close, n)
}

func members(n int) string {
	var b strings.Builder
	b.WriteByte('[')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"a":0}`)
	}
	b.WriteByte(']')
	return b.String()
}

func TestCheckAccepts(t *testing.T) {
	for name, doc := range map[string]string{
		"scalar":                   `null`,
		"white space":              " \t\r\n[ 1 , {\n} ] \n",
		"escapes":                  `"\u0000\b\f\n\r\t\"\\\/\u20ac"`,
		"surrogate pair":           `"\ud83d\ude00"`,
		"next to noncharacters":    `"\ufdcf\ufdf0\ufffd\ud83f\udffd"`,
		"raw next to them":         "\"\ufdcf\ufdf0\ufffd\U0001fffd\U00020000\"",
		"byte order mark inside":   `"` + "\ufeff" + `"`,
		"names that differ":        "{\"a\":1,\"A\":2,\"\u00e1\":3,\"a\u0301\":4}",
		"same name, other objects": `[{"a":{"a":1}},{"a":2}]`,
		"largest integer":          `[9007199254740991,-9007199254740991,9007199254740991.0,9.007199254740991e15]`,
		"zeros":                    `[0,-0,0.0,-0.0e5,0e400,0.000e-999]`,
		"smallest doubles":         `[5e-324,-5e-324,2.2250738585072014e-308,1e-323]`,
		"long fraction":            "0." + strings.Repeat("3", 400),
		"many zeros, in range":     "0." + strings.Repeat("0", 310) + "1",
		"64 arrays":                nested("[", "", "]", 64),
		"64 objects":               nested(`{"a":`, "1", "}", 64),
		"deep twice":               "[" + nested("[", "", "]", 63) + "," + nested("[", "", "]", 63) + "]",
		"1 MiB":                    `"` + strings.Repeat("x", 1<<20) + `"`,
		"1 MiB name":               `{"` + strings.Repeat("x", 1<<20) + `":0}`,
		"1 MiB once unescaped":     `"` + strings.Repeat(`\u0041`, 1<<20) + `"`,
		"100,000 members":          members(100_000),
	} {
		t.Run(name, func(t *testing.T) {
			if err := ijson.Check([]byte(doc)); err != nil {
				t.Errorf("Check: %v", err)
			}
			var v any
			if err := ijson.Unmarshal([]byte(doc), &v); err != nil {
				t.Errorf("Unmarshal: %v", err)
			}
		})
	}
}

func TestCheckRefuses(t *testing.T) {
	const (
		syntax, dup, unicode = ijson.CodeSyntax, ijson.CodeDuplicateName, ijson.CodeUnicode
		limit, number        = ijson.CodeLimit, ijson.CodeNumber
	)
	for name, c := range map[string]struct {
		doc     string
		code    string
		offset  int64
		pointer string
		says    string
	}{
		"empty":               {``, syntax, 0, "", "empty"},
		"blank":               {" \n", syntax, 0, "", "empty"},
		"cut":                 {`{"a":[1`, syntax, 7, "/a", "ends too early"},
		"cut string":          {`"abc`, syntax, 4, "", "ends too early"},
		"cut escape":          {`"\u00`, syntax, 1, "", "ends too early"},
		"trailing":            {`{} {}`, syntax, 3, "", "more data after the end"},
		"trailing brace":      {`{}}`, syntax, 2, "", "more data after the end"},
		"trailing comma":      {`[1,]`, syntax, 2, "", "invalid character"},
		"comment":             {`[1] // one`, syntax, 4, "", "more data after the end"},
		"single quotes":       {`{'a':1}`, syntax, 1, "", "invalid character"},
		"leading zero":        {`[01]`, syntax, 2, "", "invalid character"},
		"plus":                {`[+1]`, syntax, 1, "/0", "invalid character"},
		"bare fraction":       {`[1.]`, syntax, 3, "/0", "invalid character"},
		"NaN":                 {`[NaN]`, syntax, 1, "/0", "invalid character"},
		"literal":             {`[nulL]`, syntax, 4, "/0", "invalid character"},
		"control in string":   {"[\"a\x01\"]", syntax, 3, "/0", "invalid character"},
		"unknown escape":      {`"\x"`, syntax, 1, "", "invalid escape"},
		"NUL":                 {"[\x00]", syntax, 1, "/0", "invalid character"},
		"name of no string":   {`{1:2}`, syntax, 1, "", "string"},
		"duplicate":           {`{"a":1,"b":2,"a":3}`, dup, 13, "/a", `"a" occurs twice`},
		"duplicate, deep":     {`[0,{"x":{"a":1,"a":1}}]`, dup, 15, "/1/x/a", `"a" occurs twice`},
		"duplicate, escaped":  {`{"a":1,"\u0061":1}`, dup, 7, "/a", `"a" occurs twice`},
		"duplicate, empty":    {`{"":1,"":1}`, dup, 6, "/", `"" occurs twice`},
		"mark":                {"\ufeff{}", unicode, 0, "", "byte order mark"},
		"UTF-16LE":            {"\xff\xfe[\x00]\x00", unicode, 0, "", "UTF-16"},
		"UTF-16BE":            {"\xfe\xff\x00[\x00]", unicode, 0, "", "UTF-16"},
		"UTF-16LE, no mark":   {"[\x00]\x00", unicode, 0, "", "UTF-16"},
		"UTF-16BE, no mark":   {"\x00[\x00]", unicode, 0, "", "UTF-16"},
		"UTF-32LE":            {"\xff\xfe\x00\x00[\x00\x00\x00", unicode, 0, "", "UTF-32"},
		"UTF-32BE":            {"\x00\x00\xfe\xff\x00\x00\x00[", unicode, 0, "", "UTF-32"},
		"UTF-32LE, no mark":   {"[\x00\x00\x00]\x00\x00\x00", unicode, 0, "", "UTF-32"},
		"UTF-32BE, no mark":   {"\x00\x00\x00[\x00\x00\x00]", unicode, 0, "", "UTF-32"},
		"Latin-1":             {"[\"\xe9\"]", unicode, 2, "/0", "not UTF-8"},
		"overlong":            {"[\"\xc0\xaf\"]", unicode, 2, "/0", "not UTF-8"},
		"raw surrogate":       {"[\"\xed\xa0\x80\"]", unicode, 2, "/0", "not UTF-8"},
		"beyond Unicode":      {"[\"\xf4\x90\x80\x80\"]", unicode, 2, "/0", "not UTF-8"},
		"cut character":       {"[\"\xe2\x82\"]", unicode, 2, "/0", "not UTF-8"},
		"high surrogate":      {`["\ud83d"]`, unicode, 2, "/0", "surrogate"},
		"low surrogate":       {`["a\ude00"]`, unicode, 3, "/0", "surrogate"},
		"two high":            {`["\ud83d\ud83d"]`, unicode, 2, "/0", "surrogate"},
		"inverted pair":       {`["\ude00\ud83d"]`, unicode, 2, "/0", "surrogate"},
		"surrogate in a name": {`{"\ud83d":1}`, unicode, 2, "", "surrogate"},
		"FFFE":                {`["\ufffe"]`, unicode, 2, "/0", "U+FFFE"},
		"FFFF":                {`["\uFFFF"]`, unicode, 2, "/0", "U+FFFF"},
		"FDD0":                {`["a\ufdd0"]`, unicode, 3, "/0", "U+FDD0"},
		"FDEF":                {`["\ufDeF"]`, unicode, 2, "/0", "U+FDEF"},
		"1FFFE":               {`["\ud83f\udffe"]`, unicode, 2, "/0", "U+1FFFE"},
		"10FFFF":              {`["\udbff\udfff"]`, unicode, 2, "/0", "U+10FFFF"},
		"raw FFFF":            {"[\"\uffff\"]", unicode, 2, "/0", "U+FFFF"},
		"raw FDD0":            {"[\"\ufdd0\"]", unicode, 2, "/0", "U+FDD0"},
		"raw 1FFFF":           {"[\"é\U0001ffff\"]", unicode, 4, "/0", "U+1FFFF"},
		"raw 10FFFE":          {"[\"\U0010fffe\"]", unicode, 2, "/0", "U+10FFFE"},
		"in a name":           {`{"x":{"\ufffe":1}}`, unicode, 7, "/x/\ufffe", "U+FFFE"},
		"2^53":                {`[9007199254740992]`, number, 1, "/0", "2^53-1"},
		"-2^53":               {`{"n":-9007199254740992}`, number, 5, "/n", "2^53-1"},
		"2^53 with fraction":  {`[9007199254740992.0]`, number, 1, "/0", "2^53-1"},
		"2^53 with exponent":  {`[9.007199254740992e15]`, number, 1, "/0", "2^53-1"},
		"rounds to 2^53":      {`[9007199254740991.7]`, number, 1, "/0", "2^53-1"},
		"1e300":               {`[1e300]`, number, 1, "/0", "2^53-1"},
		"1.5e300":             {`[-1.5E+300]`, number, 1, "/0", "2^53-1"},
		"int64":               {`[9223372036854775807]`, number, 1, "/0", "2^53-1"},
		"overflow":            {`[1e400]`, number, 1, "/0", "too large"},
		"negative overflow":   {`[-1e309]`, number, 1, "/0", "too large"},
		"huge exponent":       {`[1e99999999999999999999]`, number, 1, "/0", "too large"},
		"long integer":        {strings.Repeat("9", 400), number, 0, "", "too large"},
		"underflow":           {`[1e-400]`, number, 1, "/0", "too close to zero"},
		"underflow, rounding": {`[-2e-324]`, number, 1, "/0", "too close to zero"},
		"underflow, no exp":   {"[0." + strings.Repeat("0", 400) + "1]", number, 1, "/0", "too close to zero"},
		"65 arrays":           {nested("[", "", "]", 65), limit, 64, strings.Repeat("/0", 64), "64 levels"},
		"65 objects":          {nested(`{"a":`, "1", "}", 65), limit, 320, strings.Repeat("/a", 64), "64 levels"},
		"mixed depth":         {nested(`[{"a":`, "[]", "}]", 32), limit, 192, strings.Repeat("/0/a", 32), "64 levels"},
		"100,000 open":        {strings.Repeat("[", 100_000), limit, 64, strings.Repeat("/0", 64), "64 levels"},
		"over 1 MiB":          {`["` + strings.Repeat("x", 1<<20+1) + `"]`, limit, 1, "/0", "1048576 bytes"},
		"over 1 MiB, escaped": {`["` + strings.Repeat(`\u20ac`, 1<<20/3+1) + `"]`, limit, 1, "/0", "1048576 bytes"},
		"over 1 MiB, short":   {`["` + strings.Repeat(`\n`, 1<<20+1) + `"]`, limit, 1, "/0", "1048576 bytes"},
		"over 1 MiB, pairs":   {`["` + strings.Repeat(`\ud83d\ude00`, 1<<18+1) + `"]`, limit, 1, "/0", "1048576 bytes"},
		"100,001 members":     {members(100_001), limit, 1 + 8*100_000 + 1, "/100000/a", "100000 members"},

		// The earliest fault is the one that is told, encoding before all.
		"number then syntax": {`[1e400,]`, number, 1, "/0", ""},
		"syntax then number": {`[1 2, 1e400]`, syntax, 3, "", ""},
		"number then bytes":  {"[1e400,\"\xff\"]", unicode, 8, "/1", "not UTF-8"},
		"duplicate, number":  {`[{"a":1,"a":1},1e400]`, dup, 8, "/0/a", ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := refused(t, ijson.Check([]byte(c.doc)))
			if e.Code != c.code || e.Offset != c.offset || e.Pointer != c.pointer {
				t.Errorf("refused with %s at %d, %q (%s); want %s at %d, %q",
					e.Code, e.Offset, e.Pointer, e.Message, c.code, c.offset, c.pointer)
			}
			if !strings.Contains(e.Message, c.says) {
				t.Errorf("message %q does not say %q", e.Message, c.says)
			}
			var v any
			if u := refused(t, ijson.Unmarshal([]byte(c.doc), &v)); !reflect.DeepEqual(u, e) {
				t.Errorf("Unmarshal says %#v, Check says %#v", u, e)
			}
			// A type that the document does not fit changes nothing either.
			var s struct {
				Other int `json:"other"`
			}
			if u := refused(t, ijson.Unmarshal([]byte(c.doc), &s)); !reflect.DeepEqual(u, e) {
				t.Errorf("Unmarshal into a struct says %#v, Check says %#v", u, e)
			}
		})
	}
}

func TestEveryNoncharacter(t *testing.T) {
	n := 0
	for r := rune(0x20); r <= 0x10FFFF; r++ {
		if r == '"' || r == '\\' || 0xD800 <= r && r < 0xE000 {
			continue
		}
		non := r&0xFFFF >= 0xFFFE || 0xFDD0 <= r && r <= 0xFDEF
		if non {
			n++
		} else if r > 0xFFFF && r&0xFFF < 0xFF0 && r&0xFFF > 0x10 {
			continue // nothing happens in the middle of a plane
		}
		if err := ijson.Check([]byte(`"` + string(r) + `"`)); (err != nil) != non {
			t.Fatalf("raw %U: %v", r, err)
		}
		escaped := fmt.Sprintf(`"\u%04x"`, r)
		if r > 0xFFFF {
			escaped = fmt.Sprintf(`"\u%04x\u%04x"`, 0xD800+(r-0x10000)>>10, 0xDC00+(r-0x10000)&0x3FF)
		}
		if err := ijson.Check([]byte(escaped)); (err != nil) != non {
			t.Fatalf("escaped %U: %v", r, err)
		}
	}
	if n != 66 {
		t.Errorf("met %d noncharacters, Unicode has 66", n)
	}
}

func TestPosition(t *testing.T) {
	doc := "{\r\n  \"é\": \"日本\",\n  \"b\": [true, 1e400]\n}"
	e := refused(t, ijson.Check([]byte(doc)))
	if e.Line != 3 || e.Column != 15 || e.Pointer != "/b/1" || doc[e.Offset:e.Offset+5] != "1e400" {
		t.Errorf("got %#v", e)
	}
	if want := "a number too large for a double (line 3, column 15, at \"/b/1\")"; e.Error() != want {
		t.Errorf("Error() = %q, want %q", e.Error(), want)
	}
	e = refused(t, ijson.Check([]byte("{\n\t\"日\": \"x\" \"y\"}")))
	if e.Line != 2 || e.Column != 11 {
		t.Errorf("got %#v", e)
	}
}

func TestForeignTextInMessages(t *testing.T) {
	for name, doc := range map[string]string{
		"unknown":   `{"other":1,"\u001b[31m\u202e` + strings.Repeat("x", 100_000) + `":1}`,
		"duplicate": `{"\u001b[31m\u202e` + strings.Repeat("x", 100_000) + `":1,"\u001b[31m\u202e` + strings.Repeat("x", 100_000) + `":1}`,
	} {
		var v struct {
			Other int `json:"other"`
		}
		e := refused(t, ijson.Unmarshal([]byte(doc), &v))
		if s := e.Error(); len(s) > 600 || strings.ContainsAny(s, "\x1b\u202e") {
			t.Errorf("%s: message of %d bytes: %.200q", name, len(s), s)
		}
	}
	var v struct {
		S string `json:"s"`
		N int    `json:"n"`
	}
	for _, doc := range []string{`{"s":"x","n":"hunter2"}`, `{"s":19283746,"n":1}`, `{"s":"x","n":19283746.5}`} {
		e := refused(t, ijson.Unmarshal([]byte(doc), &v))
		if strings.Contains(e.Error(), "hunter2") || strings.Contains(e.Error(), "19283746") {
			t.Errorf("%s: the message repeats the value: %v", doc, e)
		}
	}
}
