package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var (
	zipOther = zipped{name: "other", contents: "seen by readers of zips only"}
	le       = binary.LittleEndian
)

// toTheEnd makes a zip's comment reach over the n bytes that follow its end.
func toTheEnd(n int) func([]byte) { return func(b []byte) { le.PutUint16(b[20:], uint16(n)) } }

// tarHolding returns a tar whose last file is made by contents, which is told
// where in the tar it begins and how many bytes of the tar follow it.
func tarHolding(contents func(at int, after func(n int) int) []byte) []byte {
	t := good()
	after := func(n int) int { return -n&(tarBlock-1) + 2*tarBlock }
	return t.file("b", string(contents(t.Len()+tarBlock, after))).done()
}

// zipIn makes a zip for tarHolding, whose offsets count from the tar's first byte.
func zipIn(z zipFile) func(int, func(int) int) []byte {
	return func(at int, after func(int) int) []byte {
		z.prefix = strings.Repeat("\x00", at)
		return z.bytes()[at:]
	}
}

// tarAndZip is a tar in whose last file a zip ends, with a comment up to the end
// of the tar.
func tarAndZip() []byte {
	return tarHolding(func(at int, after func(int) int) []byte {
		n := len(zipOf(zipOther))
		return zipIn(zipFile{entries: []zipped{zipOther}, end: toTheEnd(after(n))})(at, after)
	})
}

// inTarHeader makes the first block of data a tar header of the rest of them,
// whatever it begins with.
func inTarHeader(data []byte) []byte {
	data = bytes.Clone(data)
	b := (*[tarBlock]byte)(data)
	for _, f := range []tarField{mode(0o644), sized(len(data) - 3*tarBlock), put(136, "14717235410\x00"), put(148, "        "), put(156, "0"), put(257, "ustar\x0000")} {
		f(b)
	}
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	put(148, fmt.Sprintf("%06o\x00 ", sum))(b)
	return data
}

// zipAndTar is a zip whose first header is a tar's as well.
func zipAndTar() []byte {
	m := zipped{name: "plugin.json", contents: manifest}
	m.local = field(0x7777, make([]byte, tarBlock-zipLocalLen-len(m.name)-4)...)
	n := len(zipOf(m))
	fill := -n&(tarBlock-1) + 2*tarBlock
	return inTarHeader(zipFile{entries: []zipped{m}, comment: strings.Repeat("\x00", fill)}.bytes())
}

// gzipHolding is a tar.gz with something in its header.
func gzipHolding(extra []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Extra = extra
	w.Write(good().done())
	w.Close()
	return b.Bytes()
}

func gzipAndZip() []byte {
	const before = 12 // bytes of the header
	rest := len(gzipHolding(nil)) - before + 2
	z := zipFile{prefix: strings.Repeat("\x00", before), entries: []zipped{zipOther}, end: toTheEnd(rest)}
	return gzipHolding(z.bytes()[before:])
}

// polyglots are one archive to one reader and another to the next.
func polyglots() []refused {
	in := func(z zipFile) []byte { return tarHolding(zipIn(z)) }
	all := []zipped{zipOther}
	return []refused{
		{"tar and zip", tarAndZip(), RuleFormat, ""},
		{"tar and zip, the end not at the end", in(zipFile{entries: all}), RuleFormat, ""},
		{"tar and zip64", in(zipFile{entries: all, zip64: true, end: func(b []byte) { copy(b[12:], strings.Repeat("\xff", 8)) }}), RuleFormat, ""},
		{"tar and zip, counted from the zip", tarHolding(func(_ int, after func(int) int) []byte {
			return zipFile{entries: all, end: toTheEnd(after(len(zipOf(all...))))}.bytes()
		}), RuleFormat, ""},
		{"zip and tar", zipAndTar(), RuleFormat, ""},
		{"tar.gz and tar", inTarHeader(gzipHolding(make([]byte, 2*tarBlock))), RuleFormat, ""},
		{"tar.gz and zip", gzipAndZip(), RuleFormat, ""},
	}
}

// TestZipInsideOfTar is no polyglot: one file of the package is a zip.
func TestZipInsideOfTar(t *testing.T) {
	inner := zipOf(zipOther)
	for name, data := range map[string][]byte{
		"tar":    good().file("lib.zip", string(inner)).done(),
		"zip64":  good().file("lib.zip", string(zipFile{entries: []zipped{zipOther}, zip64: true}.bytes())).done(),
		"stored": zipOf(zipped{name: "plugin.json", contents: manifest}, zipped{name: "lib.zip", contents: string(inner)}),
		"empty":  good().file("lib.zip", string(zipOf())).done(),
	} {
		t.Run(name, func(t *testing.T) {
			tree, err := newSandbox(t).extract(data, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := tree.File("lib.zip"); !ok {
				t.Error("the zip is missing")
			}
		})
	}
}

// starPrefix fills a header's prefix. By one old form its last 24 bytes are times.
var starPrefix = strings.Repeat("p", 131) + "14717235410 14717235410 "

// listings are readers of archives: each prints the names of the entries.
var listings = map[string]struct {
	needs string
	list  func(path string) (string, error)
}{
	"GNU tar":    {"tar", output("tar", "-tf")},
	"GNU tar -z": {"tar", output("tar", "-tzf")},
	"unzip":      {"unzip", output("unzip", "-Z1")},
	"python tar": {"python3", output("python3", "-c", "import sys, tarfile\nfor m in tarfile.open(sys.argv[1]): print(m.name)")},
	"python zip": {"python3", output("python3", "-c", "import sys, zipfile\nfor n in zipfile.ZipFile(sys.argv[1]).namelist(): print(n)")},
	"go tar": {"go", func(path string) (string, error) {
		f, err := os.Open(path)
		if err != nil {
			return "", err
		}
		defer f.Close()
		names := ""
		for r := tar.NewReader(f); ; {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				return names, nil
			}
			if err != nil {
				return names, err
			}
			names += h.Name + "\n"
		}
	}},
}

func output(command ...string) func(string) (string, error) {
	return func(path string) (string, error) {
		out, err := exec.Command(command[0], append(command[1:], path)...).Output()
		return string(out), err
	}
}

// TestReadersDiffer shows what the refusals are for: two readers that people use
// see different files in one archive, or only one of them reads it. Extract is
// neither's fool.
func TestReadersDiffer(t *testing.T) {
	for _, c := range []struct {
		name           string
		data           []byte
		one, other     string // readers
		names, nothers string // what they list; "" for a reader that refuses
	}{
		{"GNU prefix", good().file("b", "x", gnu(), put(345, "p")).done(), "GNU tar", "python tar", "plugin.json\nb\n", "plugin.json\np/b\n"},
		{"prefix cut at a mark", good().file("b", "x", put(345, starPrefix), put(508, "tar\x00")).done(), "python tar", "go tar",
			"plugin.json\n" + starPrefix + "/b\n", "plugin.json\n" + starPrefix[:131] + "/b\n"},
		{"blank size", good().file("b", "", put(124, strings.Repeat(" ", 12))).done(), "GNU tar", "python tar", "", "plugin.json\nb\n"},
		{"tar and zip", tarAndZip(), "GNU tar", "python zip", "plugin.json\nb\n", "other\n"},
		{"tar and zip, by unzip", tarAndZip(), "python tar", "unzip", "plugin.json\nb\n", "other\n"},
		{"zip and tar", zipAndTar(), "unzip", "GNU tar", "plugin.json\n", "PK\\003\\004\\024\n"},
		{"tar.gz and zip", gzipAndZip(), "GNU tar -z", "python zip", "plugin.json\n", "other\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "archive")
			if err := os.WriteFile(path, c.data, 0o600); err != nil {
				t.Fatal(err)
			}
			for reader, want := range map[string]string{c.one: c.names, c.other: c.nothers} {
				if _, err := exec.LookPath(listings[reader].needs); err != nil {
					t.Skipf("%s is not installed", listings[reader].needs)
				}
				got, err := listings[reader].list(path)
				if want == "" && err == nil || want != "" && (err != nil || got != want) {
					t.Errorf("%s lists %q, %v; want %q", reader, got, err, want)
				}
			}
			var r *Refusal
			if _, err := newSandbox(t).extract(c.data, Options{}); !errors.As(err, &r) {
				t.Errorf("not refused: %v", err)
			}
		})
	}
}
