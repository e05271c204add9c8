package archive

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestNamesAgree(t *testing.T) {
	long := strings.Repeat("d/", 60) + "f"
	for _, c := range []struct {
		own, name string
		want      bool
	}{
		{"a/b", "a/b", true}, {"./a/", "a", true}, {"a", "./a/", true},
		{"innocent.txt", "evil.txt", false}, {"evil.tx", "evil.txt", false}, {"", "a", false},
		{long[:100], long, true}, {"6f1ed002ab5595859014ebf0951522d9.data", long, true},
		{"gr??e.txt", "größe.txt", true}, {"gre.txt", "größe.txt", true}, {"gr\xf6\xdfe.txt", "größe.txt", true},
		{"größe.txt", "gro\u0308ße.txt", true}, {"gro\u0308ße.txt", "größe.txt", true},
		{"innocent.txt", "größe.txt", false}, {"größe.bin", "größe.txt", false}, {"größe", "größe.txt", false},
		{"?????.txt", "日本語.txt", true}, {"x.txt", "日本語.bin", false}, {"anything", "日本語", true},
	} {
		if got := namesAgree(c.own, c.name); got != c.want {
			t.Errorf("%q beside %q: %t", c.own, c.name, got)
		}
	}
}

// What tar, bsdtar and Python write for long and non-ASCII names is read.
func TestNamesOfTools(t *testing.T) {
	names := []string{"plain.txt", "ümläut/ñandú.txt", strings.Repeat("日", 40) + ".txt", strings.Repeat("g", 90) + "/sub/" + strings.Repeat("ö", 60),
		strings.Repeat("p", 50) + "/" + strings.Repeat("q", 50) + "/" + strings.Repeat("r", 50) + "/f.txt", strings.Repeat("l", 120)}
	for n := 88; n <= 104; n++ {
		names = append(names, strings.Repeat("n", n-4)+".txt", "é"+strings.Repeat("m", n-2))
	}
	dir := t.TempDir()
	for _, name := range names {
		path := filepath.Join(dir, "src", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(names)
	python := func(format, encoding string) string {
		return `python3 -c 'import os, tarfile; t = tarfile.open(os.environ["OUT"], "w", format=tarfile.` + format + `, encoding="` + encoding +
			`", errors="replace"); t.add("."); t.close()'`
	}
	for _, command := range []string{
		"tar --format=gnu -cf $OUT .", "tar --format=posix -cf $OUT .", "tar --format=posix -cf $OUT *", "bsdtar --format=pax -cf $OUT .", "bsdtar -cf $OUT *",
		"bsdtar --format=gnutar -cf $OUT *", python("PAX_FORMAT", "utf-8"), python("PAX_FORMAT", "ascii"), python("PAX_FORMAT", "latin-1"), python("GNU_FORMAT", "utf-8"),
	} {
		t.Run(command, func(t *testing.T) {
			program, _, _ := strings.Cut(command, " ")
			if _, err := exec.LookPath(program); err != nil {
				t.Skipf("%s is not installed", program)
			}
			out := filepath.Join(t.TempDir(), "out.tar")
			cmd := exec.Command("sh", "-ec", command)
			cmd.Dir = filepath.Join(dir, "src")
			cmd.Env = append(os.Environ(), "OUT="+out, "LC_ALL=C.UTF-8")
			if b, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, b)
			}
			data, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			tree, err := newSandbox(t).extract(data, Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range tree.Files {
				got = append(got, f.Path)
			}
			slices.Sort(got)
			if !slices.Equal(got, names) {
				t.Errorf("got %q", got)
			}
		})
	}
}
