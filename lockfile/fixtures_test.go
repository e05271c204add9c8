package lockfile

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/lockfile/tomlstrict"
	"github.com/switchyard-plugins/switchyard/lockfile/tomlstrict/tomltest"
)

const fixtures = "../testdata/lockfiles/"

func TestInvalidFixtures(t *testing.T) {
	tomltest.Run(t, fixtures+"invalid/*.lock", func(name string, data []byte) error {
		_, err := Parse(name, data)
		return err
	})
}

func TestValidFixturesAreCanonical(t *testing.T) {
	for _, file := range tomltest.Files(t, fixtures+"valid/*.lock") {
		data := read(t, file)
		for _, text := range [][]byte{data, tomltest.CRLF(data)} {
			f, err := Parse(file, text)
			if err != nil {
				t.Error(err)
				continue
			}
			if got := f.Format(); !bytes.Equal(got, data) {
				t.Errorf("%s is written as\n%s", file, got)
			}
			if line := f.FirstDifference(text); line != 0 {
				t.Errorf("%s: line %d counts as not canonical", file, line)
			}
		}
		if Digest(data) != Digest(tomltest.CRLF(data)) {
			t.Errorf("%s: line ends change the digest", file)
		}
	}
}

func TestLooseFixturesAreReadAndNotCanonical(t *testing.T) {
	for _, file := range tomltest.Files(t, fixtures+"loose/*.lock") {
		data := read(t, file)
		f, err := Parse(file, data)
		if err != nil {
			t.Error(err)
			continue
		}
		if f.FirstDifference(data) == 0 {
			t.Errorf("%s counts as canonical", file)
		}
		again, err := Parse(file, f.Format())
		if err != nil || !Equal(f, again) || f.FirstDifference(f.Format()) != 0 {
			t.Errorf("%s: the canonical form reads differently: %v", file, err)
		}
	}
}

// TestDocumentedLockIsCanonical reads the first example of the format's page.
func TestDocumentedLockIsCanonical(t *testing.T) {
	const page = "../docs/lockfile.md"
	example := tomltest.Blocks(t, page)[0]
	f, err := Parse(page, example)
	if err != nil {
		t.Fatal(err)
	}
	if line := f.FirstDifference(example); line != 0 || len(f.Plugins) != 1 {
		t.Errorf("line %d of the example is not canonical:\n%s", line, f.Format())
	}
}

func TestCauses(t *testing.T) {
	valid := read(t, filepath.Join(fixtures, "valid", "one.lock"))
	for _, c := range []struct {
		name  string
		text  string
		cause error
		want  string
	}{
		{"conflict", "lockVersion = 1\n<<<<<<< ours\n", ErrConflict, "x:2:1: "},
		{"version", "lockVersion = 7\n", ErrVersion, "x:1:15: lockVersion 7 comes from a newer switchyard"},
		{"mark", "\xef\xbb\xbf" + string(valid), tomlstrict.ErrEncoding, "x:1:1: the file starts with a byte order mark"},
		{"utf-16", "\xff\xfel\x00", tomlstrict.ErrEncoding, "x:1:1: the file is UTF-16"},
		{"utf-8", "# é\n# \xc3\x28", tomlstrict.ErrEncoding, "x:2:3: byte 0xc3 is not UTF-8"},
		{"size", strings.Repeat("#", MaxBytes+1), tomlstrict.ErrTooLarge, "x:1:1: the file has 4194305 bytes; at most 4194304 are read"},
		{"empty", "", nil, `x:1:1: the lock: "lockVersion" is missing`},
		{"lone carriage return", "lockVersion = 1\rplugin = []", nil, "x:1:16: control character 0x0d"},
		{"nul", "lockVersion = 1\x00", nil, "x:1:16: control character 0x00"},
		{"column counts characters", "lockVersion = 1\n\"ключ\" = 1", nil, "x:2:1: the lock: unknown member"},
		{"column after characters", "\"ключ\" = \"é\" x", nil, "x:1:14: expected the end of the line"},
		{"plugins", "lockVersion = 1\nplugin = [" + strings.Repeat("{},", MaxPlugins+1) + "]", tomlstrict.ErrTooLarge, "more than 5000 tables"},
		{"members", "lockVersion = 1\nplugin = [" + strings.Repeat("1,", tomlstrict.MaxMembers) + "]", tomlstrict.ErrTooLarge, "more than 200000 members"},
		{"deep arrays", "a = " + strings.Repeat("[", MaxBytes-4), tomlstrict.ErrTooLarge, "nested deeper"},
	} {
		_, err := Parse("x", []byte(c.text))
		var first *SyntaxError
		switch {
		case !errors.As(err, &first):
			t.Errorf("%s: %v", c.name, err)
		case !strings.Contains(first.Error(), c.want):
			t.Errorf("%s: got %q, want %q", c.name, first, c.want)
		case first.Err != c.cause, c.cause != nil && !errors.Is(err, c.cause):
			t.Errorf("%s: cause is %v", c.name, first.Err)
		}
	}
}

func TestFaultsAreBoundedAndInOrder(t *testing.T) {
	_, err := Parse("x", []byte("lockVersion = 1\n"+strings.Repeat("[[plugin]]\n", 50)))
	var faults Faults
	if !errors.As(err, &faults) || len(faults) != tomlstrict.MaxFaults {
		t.Fatalf("got %v", err)
	}
	for i := 1; i < len(faults); i++ {
		if faults[i].Line < faults[i-1].Line {
			t.Errorf("fault %d stands before its predecessor", i)
		}
	}
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
