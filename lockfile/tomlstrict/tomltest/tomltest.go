// Package tomltest runs fixtures that say themselves what is wrong with them:
// a line that holds
//
//	# ERROR: text
//
// must give a fault in that line whose message contains text, and no other line
// may give one. A new case is one new file. It is for tests only.
package tomltest

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/lockfile/tomlstrict"
)

const mark = "# ERROR: "

// Run reads every file that glob matches, with LF and with CRLF line ends, and
// compares its faults with its marks. A glob without a match fails, and so does
// a file without a mark.
func Run(t *testing.T, glob string, parse func(name string, data []byte) error) {
	t.Helper()
	for _, file := range Files(t, glob) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, data, parse(file, data))
			compare(t, data, parse(file, CRLF(data)))
		})
	}
}

// Files is filepath.Glob that fails without a match.
func Files(t testing.TB, glob string) []string {
	t.Helper()
	files, err := filepath.Glob(glob)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("no file matches %s", glob)
	}
	return files
}

// Blocks returns the TOML examples of a document, so that they can be tested too.
func Blocks(t testing.TB, document string) [][]byte {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	var blocks [][]byte
	for _, after := range strings.Split(string(text), "\n```toml\n")[1:] {
		block, _, closed := strings.Cut(after, "\n```")
		if !closed {
			t.Fatalf("%s: an example does not end", document)
		}
		blocks = append(blocks, []byte(block+"\n"))
	}
	return blocks
}

// CRLF returns data with every LF as CRLF.
func CRLF(data []byte) []byte { return bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n")) }

func compare(t *testing.T, data []byte, err error) {
	t.Helper()
	want := make(map[int][]string)
	for i, line := range strings.Split(string(data), "\n") {
		for _, text := range strings.Split(line, mark)[1:] {
			want[i+1] = append(want[i+1], strings.TrimSpace(text))
		}
	}
	if len(want) == 0 {
		t.Fatalf("no line holds %q", mark)
	}
	var faults tomlstrict.Faults
	if !errors.As(err, &faults) {
		t.Fatalf("want faults in lines %v, got %v", want, err)
	}
	for _, fault := range faults {
		found := false
		for i, text := range want[fault.Line] {
			if strings.Contains(fault.Message, text) {
				want[fault.Line] = append(want[fault.Line][:i:i], want[fault.Line][i+1:]...)
				found = true
				break
			}
		}
		if !found {
			t.Errorf("unexpected fault %v", fault)
		}
	}
	for line, texts := range want {
		for _, text := range texts {
			t.Errorf("line %d: no fault contains %q", line, text)
		}
	}
}
