package digest_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/gowebpki/jcs"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
)

const (
	emptyHex = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" // of no bytes
	abcHex   = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // of "abc", FIPS 180-2
)

func TestSpellings(t *testing.T) {
	want := digest.Digest("sha256:" + abcHex)
	for _, s := range []string{abcHex, "sha256:" + abcHex, strings.ToUpper(abcHex), "sha256:" + strings.ToUpper(abcHex)} {
		d, err := digest.Parse(s)
		if err != nil || d != want {
			t.Errorf("Parse(%q) = %q, %v", s, d, err)
		}
		if got := digest.IsCanonical(s); got != (s == string(want)) {
			t.Errorf("IsCanonical(%q) = %v", s, got)
		}
	}
	for _, s := range []string{
		"", "sha256:", abcHex[1:], abcHex + "0", "sha256:" + abcHex + " ", " " + abcHex, "g" + abcHex[1:],
		"SHA256:" + abcHex, "sha512:" + abcHex, "sha256-" + abcHex, "sha256:sha256:" + abcHex, "é" + abcHex[2:],
	} {
		if d, err := digest.Parse(s); !errors.Is(err, digest.ErrSyntax) || d != "" {
			t.Errorf("Parse(%q) = %q, %v", s, d, err)
		}
		if digest.IsCanonical(s) {
			t.Errorf("IsCanonical(%q)", s)
		}
	}
}

func TestNames(t *testing.T) {
	d := digest.Of([]byte("abc"))
	if string(d) != "sha256:"+abcHex || d.Hex() != abcHex || d.DirName() != "sha256-"+abcHex || d.Short() != abcHex[:12] {
		t.Errorf("%q %q %q %q", d, d.Hex(), d.DirName(), d.Short())
	}
	if digest.FromSum(sha256.Sum256([]byte("abc"))) != d {
		t.Error("FromSum differs from Of")
	}
	if back, err := digest.ParseDirName(d.DirName()); err != nil || back != d {
		t.Errorf("ParseDirName: %q, %v", back, err)
	}
	for _, name := range []string{"", abcHex, string(d), "sha256-" + strings.ToUpper(abcHex), "sha256-" + abcHex[1:], "sha256-" + abcHex + "x"} {
		if _, err := digest.ParseDirName(name); !errors.Is(err, digest.ErrSyntax) {
			t.Errorf("ParseDirName(%q): %v", name, err)
		}
	}
	if none := digest.Digest(""); none.Short() != "" || none.Hex() != "" {
		t.Error("the zero digest has digits")
	}
	defer func() {
		if recover() == nil {
			t.Error("FromBytes takes a sum of 31 bytes")
		}
	}()
	digest.FromBytes(make([]byte, 31))
}

func TestFingerprint(t *testing.T) {
	got, err := digest.Fingerprint([]byte("a"), strings.NewReader("bc"))
	if err != nil || got.Hex() != abcHex {
		t.Errorf("%s, %v", got, err)
	}
	cause := errors.New("gone")
	if got, err := digest.Fingerprint([]byte("a"), iotest.ErrReader(cause)); !errors.Is(err, cause) || got != "" {
		t.Errorf("%q, %v", got, err)
	}
}

// One digest, worked out by hand with sha256sum, so that a change of the
// definition cannot pass unseen.
func TestPackageGolden(t *testing.T) {
	files := []digest.File{
		{Path: "plugin.json", Mode: digest.ModeFile, Size: 3, SHA256: abcHex},
		{Path: "bin/tool", Mode: digest.ModeExecutable, Size: 0, SHA256: emptyHex},
	}
	canonical := `[{"mode":"0755","path":"bin/tool","sha256":"` + emptyHex + `","size":0},` +
		`{"mode":"0644","path":"plugin.json","sha256":"` + abcHex + `","size":3}]`
	sum := sha256.Sum256([]byte(canonical))
	if got := hex.EncodeToString(sum[:]); got != goldenHex {
		t.Fatalf("the golden form has digest %s", got)
	}
	if got, err := digest.Package(files); err != nil || got.Hex() != goldenHex {
		t.Errorf("%s, %v; want %s", got, err, goldenHex)
	}
	if files[0].Path != "plugin.json" {
		t.Error("the caller's slice was sorted")
	}
	if got, err := digest.Package(nil); err != nil || got != digest.Of([]byte("[]")) {
		t.Errorf("no files: %s, %v", got, err)
	}
}

const goldenHex = "023013316a35b80c1a8e441e1ade08097f7e0833412978d6fded3383910826a5"

// byOthers computes the package digest with the two RFC 8785 implementations.
func byOthers(t *testing.T, files []digest.File) (viaJCS, viaJSONText digest.Digest) {
	t.Helper()
	type element struct {
		Path   string `json:"path"`
		Mode   string `json:"mode"`
		Size   int64  `json:"size"`
		SHA256 string `json:"sha256"`
	}
	elements := []element{}
	for _, f := range files {
		elements = append(elements, element(f))
	}
	slices.SortFunc(elements, func(a, b element) int { return bytes.Compare([]byte(a.Path), []byte(b.Path)) })
	doc, err := json.Marshal(elements)
	if err != nil {
		t.Fatal(err)
	}
	canonical, err := jcs.Transform(doc)
	if err != nil {
		t.Fatal(err)
	}
	value := jsontext.Value(doc)
	if err := value.Canonicalize(); err != nil {
		t.Fatal(err)
	}
	return digest.Of(canonical), digest.Of(value)
}

func randomFiles(r *rand.Rand, n int) []digest.File {
	alphabet := []rune("abcXYZ019/.-_ \"\\\b\f\n\r\t\x00\x01\x1f\x7f\u0080éß\u2028\u2029€\ufb33\uffff😂𝄞<>&")
	seen := map[string]bool{}
	var files []digest.File
	for len(files) < n {
		name := make([]rune, 1+r.IntN(20))
		for i := range name {
			name[i] = alphabet[r.IntN(len(alphabet))]
		}
		if seen[string(name)] {
			continue
		}
		seen[string(name)] = true
		sum := sha256.Sum256([]byte(string(name)))
		f := digest.File{Path: string(name), Mode: digest.ModeFile, Size: r.Int64N(1 << 53), SHA256: hex.EncodeToString(sum[:])}
		if r.IntN(3) == 0 {
			f.Mode = digest.ModeExecutable
		}
		files = append(files, f)
	}
	return files
}

func TestPackageAgainstOthers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 60 {
		files := randomFiles(r, n)
		got, err := digest.Package(files)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := byOthers(t, files); got != a || got != b {
			t.Fatalf("%d files: %s; jcs says %s, jsontext %s\n%+v", n, got, a, b, files)
		}
	}
}

func TestPackageIgnoresOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	files := randomFiles(r, 200)
	want, err := digest.Package(files)
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		r.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
		if got, err := digest.Package(files); err != nil || got != want {
			t.Fatalf("%s, %v in another order; was %s", got, err, want)
		}
	}
}

// Every field of every file counts, and so does the number of files.
func TestPackageNoticesChange(t *testing.T) {
	files := randomFiles(rand.New(rand.NewPCG(5, 6)), 20)
	seen := map[digest.Digest]string{}
	note := func(what string, files []digest.File) {
		d, err := digest.Package(files)
		if err != nil {
			t.Fatal(err)
		}
		if other, dup := seen[d]; dup {
			t.Errorf("%s and %s have one digest", what, other)
		}
		seen[d] = what
	}
	note("the original", files)
	for i := range files {
		for what, change := range map[string]func(*digest.File){
			"path":   func(f *digest.File) { f.Path += "~" },
			"size":   func(f *digest.File) { f.Size ^= 1 },
			"sha256": func(f *digest.File) { f.SHA256 = abcHex },
			"mode": func(f *digest.File) {
				if f.Mode == digest.ModeFile {
					f.Mode = digest.ModeExecutable
				} else {
					f.Mode = digest.ModeFile
				}
			},
		} {
			changed := slices.Clone(files)
			change(&changed[i])
			note(fmt.Sprintf("file %d with another %s", i, what), changed)
		}
		note(fmt.Sprintf("without file %d", i), slices.Delete(slices.Clone(files), i, i+1))
	}
}

func TestPackageRefuses(t *testing.T) {
	good := digest.File{Path: "a", Mode: digest.ModeFile, Size: 1, SHA256: abcHex}
	for name, change := range map[string]func(*digest.File){
		"empty path":       func(f *digest.File) { f.Path = "" },
		"path not UTF-8":   func(f *digest.File) { f.Path = "a\xff" },
		"no mode":          func(f *digest.File) { f.Mode = "" },
		"other mode":       func(f *digest.File) { f.Mode = "0600" },
		"negative size":    func(f *digest.File) { f.Size = -1 },
		"unwritable size":  func(f *digest.File) { f.Size = 1 << 53 },
		"no hash":          func(f *digest.File) { f.SHA256 = "" },
		"upper-case hash":  func(f *digest.File) { f.SHA256 = strings.ToUpper(abcHex) },
		"hash with prefix": func(f *digest.File) { f.SHA256 = "sha256:" + abcHex },
	} {
		bad := good
		change(&bad)
		if d, err := digest.Package([]digest.File{bad}); err == nil {
			t.Errorf("%s: %s", name, d)
		}
	}
	if d, err := digest.Package([]digest.File{good, {Path: "b", Mode: digest.ModeFile, SHA256: abcHex}, good}); err == nil {
		t.Errorf("the same path twice: %s", d)
	}
	if _, err := digest.Package([]digest.File{good}); err != nil {
		t.Error(err)
	}
}

func BenchmarkPackage(b *testing.B) {
	files := randomFiles(rand.New(rand.NewPCG(7, 8)), 5000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := digest.Package(files); err != nil {
			b.Fatal(err)
		}
	}
}

// A session manifest's digest does not cover itself, and covers everything else.
func TestSessionManifest(t *testing.T) {
	const doc = `{"b":1,"provenance":{"manifestDigest":"sha256:00","sbomRef":"urn:x"},"a":[]}`
	want := digest.Of([]byte(`{"a":[],"b":1,"provenance":{"sbomRef":"urn:x"}}`))
	for _, same := range []string{doc, strings.Replace(doc, "sha256:00", "sha256:11", 1), strings.Replace(doc, `"b":1`, ` "b" : 1.0`, 1)} {
		if d, err := digest.SessionManifest([]byte(same)); err != nil || d != want {
			t.Errorf("%s: %s, %v; want %s", same, d, err, want)
		}
	}
	for _, other := range []string{strings.Replace(doc, "urn:x", "urn:y", 1), strings.Replace(doc, `"b":1`, `"b":2`, 1), strings.Replace(doc, "sbomRef", "manifestdigest", 1)} {
		if d, err := digest.SessionManifest([]byte(other)); err != nil || d == want {
			t.Errorf("%s: %s, %v", other, d, err)
		}
	}
	if d, err := digest.SessionManifest([]byte(`{"provenance":{}}`)); !errors.Is(err, sessionmanifest.ErrNoDigest) || d != "" {
		t.Errorf("%s, %v", d, err)
	}
	if d, err := digest.Schema([]byte(` {"b":1,"a":2}`)); err != nil || d != digest.Of([]byte(`{"a":2,"b":1}`)) {
		t.Errorf("%s, %v", d, err)
	}
}
