package lockfile

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/switchyard-plugins/switchyard/lockfile/tomlstrict/tomltest"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// generator makes random valid locks from small sets of values, so that two of
// them often agree in part.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64) generator { return generator{rand.New(rand.NewPCG(seed, 7))} }

func (g generator) pick(s ...string) string { return s[g.IntN(len(s))] }

func (g generator) digest() digest.Digest { return digest.Of([]byte{byte(g.IntN(3))}) }

func (g generator) subset(s ...string) []string {
	var sub []string
	for _, v := range s {
		if g.IntN(2) == 0 {
			sub = append(sub, v)
		}
	}
	g.Shuffle(len(sub), func(i, j int) { sub[i], sub[j] = sub[j], sub[i] })
	return sub
}

func (g generator) platform() Platform {
	return Platform{
		Archive: g.digest(), Package: g.digest(), Manifest: g.digest(), Fingerprint: g.digest(),
		Evidence: g.subset("signature", "provenance"),
	}
}

func (g generator) plugin() Plugin {
	p := Plugin{
		ID:        g.pick("a", "b", "c", "d", "e-x", "e.x"),
		Version:   g.pick("1.0.0", "2.0.0-rc.1+b", `odd "v" \ é`),
		Source:    g.pick("", "dist/{version}-{os}.zip", `./a//b "c".zip`, "../x", "https://plugins.example/{version}.zip"),
		Grants:    g.subset("project.metadata.read", "project.files.read", "project.operate"),
		Platforms: map[string]Platform{},
	}
	switch g.IntN(3) {
	case 0:
		p.Signer = &Signer{Identity: g.pick("x", "y"), Issuer: `https://"issuer"\`}
	case 1:
		p.Signer = &Signer{Key: g.pick("k1", "k2")}
	}
	keys := g.subset("linux/amd64", "linux/arm64", "darwin/arm64", "windows/amd64")
	if len(keys) == 0 {
		keys = []string{Any}
	}
	for _, key := range keys {
		p.Platforms[key] = g.platform()
	}
	return p
}

func (g generator) file() *File {
	f := &File{}
	for range g.IntN(5) {
		f = f.With(g.plugin())
	}
	for range g.IntN(3) {
		f = f.WithFloor(g.pick("https://a.example", "https://b.example"), 1+g.Int64N(5))
	}
	return f
}

// change makes one random edit, as one branch of development would.
func (g generator) change(f *File) *File {
	switch {
	case len(f.Plugins) == 0 || g.IntN(4) == 0:
		return f.With(g.plugin())
	case g.IntN(5) == 0:
		return f.WithFloor("https://a.example", 1+g.Int64N(9))
	}
	p := f.Plugins[g.IntN(len(f.Plugins))].canonical()
	switch g.IntN(6) {
	case 0:
		return f.Without(p.ID)
	case 1:
		p.Grants = g.subset("project.metadata.read", "project.operate")
	case 2:
		p.Version, p.Platforms = "3.0.0", map[string]Platform{"linux/amd64": g.platform()}
	case 3:
		p.Platforms[p.keys()[0]] = g.platform()
	case 4:
		if len(p.Platforms) > 1 {
			delete(p.Platforms, p.keys()[0])
		}
	default:
		delete(p.Platforms, Any)
		p.Platforms[g.pick("linux/386", "linux/riscv64")] = g.platform()
	}
	return f.With(p)
}

func TestReadIsInverseOfWrite(t *testing.T) {
	for seed := range uint64(400) {
		f := newGenerator(seed).file()
		text := f.Format()
		for _, text := range [][]byte{text, tomltest.CRLF(text)} {
			got, err := Parse("generated", text)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if !reflect.DeepEqual(got, f) {
				t.Fatalf("read %+v, wrote %+v", got, f)
			}
			if !bytes.Equal(got.Format(), f.Format()) || got.FirstDifference(text) != 0 {
				t.Fatalf("not canonical:\n%s", text)
			}
		}
	}
}

func TestAnyOrderGivesTheSameBytes(t *testing.T) {
	for seed := range uint64(200) {
		g := newGenerator(seed)
		byID := map[string]Plugin{}
		for range 5 {
			p := g.plugin()
			byID[p.ID] = p
		}
		var want []byte
		for range 4 {
			ids := slices.Collect(maps.Keys(byID))
			g.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
			edited, literal := (&File{}).With(Plugin{ID: "gone", Version: "1"}).WithFloor("i", 2), &File{}
			for _, id := range ids {
				p := byID[id]
				keys := p.keys()
				g.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
				part := p.canonical()
				clear(part.Platforms)
				edited = edited.With(part)
				for _, key := range keys {
					var err error
					if edited, err = edited.WithPlatform(id, key, p.Platforms[key]); err != nil {
						t.Fatal(err)
					}
				}
				g.Shuffle(len(p.Grants), func(i, j int) { p.Grants[i], p.Grants[j] = p.Grants[j], p.Grants[i] })
				literal.Plugins = append(literal.Plugins, p)
			}
			literal.Revocations = []Floor{{"i", 1}, {"i", 3}, {"i", 2}}
			edited = edited.Without("gone").WithFloor("i", 3).WithFloor("i", 1)
			for _, text := range [][]byte{edited.Format(), literal.Format()} {
				if want == nil {
					want = text
				}
				if !bytes.Equal(text, want) {
					t.Fatalf("seed %d: %s\nand\n%s", seed, text, want)
				}
			}
		}
	}
}

func TestEditsAreValues(t *testing.T) {
	for seed := range uint64(100) {
		g := newGenerator(seed)
		f := g.file()
		before := f.Format()
		for range 3 {
			changed := g.change(f)
			changed.With(g.plugin())
			Merge(f, changed, g.change(f))
			for _, p := range changed.Plugins {
				p.Platforms["plan9/386"] = Platform{}
				for i := range p.Grants {
					p.Grants[i] = "overwritten"
				}
				if p.Signer != nil {
					p.Signer.Key = "overwritten"
				}
			}
		}
		if !bytes.Equal(f.Format(), before) {
			t.Fatalf("seed %d: an edit changed its receiver", seed)
		}
	}
}

func TestDiffIsEmptyExactlyForEqualLocks(t *testing.T) {
	equal := 0
	for seed := range uint64(300) {
		g := newGenerator(seed)
		a := g.file()
		b := g.change(a)
		diff := Diff(a, b)
		if (len(diff) == 0) != Equal(a, b) {
			t.Fatalf("seed %d: equal is %v, differences are %v", seed, Equal(a, b), diff)
		}
		if len(diff) == 0 {
			equal++
		}
		if len(Diff(b, a)) != len(diff) {
			t.Fatalf("seed %d: the other way there are %v, not %v", seed, Diff(b, a), diff)
		}
		if Diff(a, a) != nil {
			t.Fatalf("seed %d: a lock differs from itself: %v", seed, Diff(a, a))
		}
	}
	if equal == 300 {
		t.Fatal("no edit changed anything")
	}
}

func TestMergeLaws(t *testing.T) {
	clean, conflicting, both := 0, 0, 0
	for seed := range uint64(1500) {
		g := newGenerator(seed)
		base := g.file()
		ours, theirs := base, base
		for range 1 + g.IntN(3) {
			ours = g.change(ours)
		}
		for range 1 + g.IntN(3) {
			theirs = g.change(theirs)
		}
		if seed%10 == 0 {
			base = nil
		}
		merged, conflicts := Merge(base, ours, theirs)
		other, mirrored := Merge(base, theirs, ours)
		if !Equal(merged, other) || len(conflicts) != len(mirrored) || (merged == nil) != (len(conflicts) > 0) {
			t.Fatalf("seed %d: merging does not commute: %v and %v", seed, conflicts, mirrored)
		}
		for _, f := range []*File{ours, theirs} {
			same, none := Merge(base, f, f)
			if none != nil || len(Diff(f, same)) > 0 {
				t.Fatalf("seed %d: two equal sides merge to a change: %v", seed, Diff(f, same))
			}
			if base == nil {
				continue
			}
			taken, none := Merge(base, base, f)
			if none != nil || len(withoutFloors(Diff(f, taken))) > 0 {
				t.Fatalf("seed %d: a change of one side is not taken as it is: %v %v", seed, none, Diff(f, taken))
			}
		}
		if merged == nil {
			conflicting++
			checkConflictText(t, base, ours, theirs)
			continue
		}
		clean++
		checkNoUnion(t, seed, merged, ours, theirs)
		for issuer, floor := range floors(merged) {
			if want := max(floors(ours)[issuer], floors(theirs)[issuer]); floor != want {
				t.Fatalf("seed %d: floor of %s is %d, not %d", seed, issuer, floor, want)
			}
		}
		if text := merged.Format(); !validOrEmpty(merged) {
			t.Fatalf("seed %d: the merged lock is not valid:\n%s", seed, text)
		}
		if !Equal(merged, ours) && !Equal(merged, theirs) {
			both++
		}
	}
	if clean < 200 || conflicting < 200 || both < 50 {
		t.Fatalf("the generator is one-sided: %d clean, %d conflicting, %d of both sides", clean, conflicting, both)
	}
}

func withoutFloors(changes []Change) []Change {
	return slices.DeleteFunc(changes, func(c Change) bool { return c.Kind == FloorChanged })
}

func validOrEmpty(f *File) bool {
	_, err := Parse("merged", f.Format())
	return err == nil
}

// checkNoUnion: each platform of the merged lock stands in one side as a whole,
// under the same version, source, grants and signer.
func checkNoUnion(t *testing.T, seed uint64, merged, ours, theirs *File) {
	t.Helper()
	for _, p := range merged.Plugins {
		for key, e := range p.Platforms {
			found := false
			for _, side := range []*File{ours, theirs} {
				q, ok := side.Plugin(p.ID)
				if !ok {
					continue
				}
				o, ok := q.Platforms[key]
				q.Platforms, q.Grants = p.Platforms, slices.Clone(q.Grants)
				found = found || ok && samePlatform(o, e) && len(diffPlugin(p, q)) == 0
			}
			if !found {
				t.Fatalf("seed %d: %s %s of the merged lock stands on neither side", seed, p.ID, key)
			}
		}
	}
}

// checkConflictText: a marked text comes apart into sides that conflict in the
// same way.
func checkConflictText(t *testing.T, base, ours, theirs *File) {
	t.Helper()
	var baseText []byte
	if base != nil {
		baseText = base.Format()
	}
	text, conflicts, err := MergeText(baseText, ours.Format(), theirs.Format())
	if err != nil || len(conflicts) == 0 {
		t.Fatalf("%v %v", conflicts, err)
	}
	if _, err := Parse("marked", text); err == nil {
		t.Fatalf("a marked text is a valid lock:\n%s", text)
	}
	for _, text := range [][]byte{text, tomltest.CRLF(text)} {
		again, same, err := MergeConflicted("marked", text)
		if err != nil || fmt.Sprint(same) != fmt.Sprint(conflicts) {
			t.Fatalf("conflicts %v became %v, %v in\n%s", conflicts, same, err, text)
		}
		if !bytes.Equal(again, lf(text)) {
			t.Fatalf("merging a marked text again changes it:\n%s\n%s", text, again)
		}
	}
}

func FuzzParse(f *testing.F) {
	seeds := 0
	for _, dir := range []string{"valid", "loose", "invalid"} {
		for _, file := range tomltest.Files(f, filepath.Join(fixtures, dir, "*.lock")) {
			f.Add(read(f, file))
			seeds++
		}
	}
	if seeds < 50 {
		f.Fatalf("only %d seeds", seeds)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		lock, err := Parse("fuzz", data)
		withCRLF, errCRLF := Parse("fuzz", tomltest.CRLF(lf(data)))
		withLF, errLF := Parse("fuzz", lf(data))
		if fmt.Sprint(errCRLF) != fmt.Sprint(errLF) || !Equal(withCRLF, withLF) {
			t.Fatalf("line ends matter: %v, %v", errCRLF, errLF)
		}
		MergeConflicted("fuzz", data)
		if err != nil {
			return
		}
		text := lock.Format()
		again, err := Parse("fuzz", text)
		if err != nil || !reflect.DeepEqual(lock, again) {
			t.Fatalf("%v: read back %+v, not %+v from\n%s", err, again, lock, text)
		}
		if lock.FirstDifference(text) != 0 {
			t.Fatal("the canonical text is not canonical")
		}
		if merged, conflicts := Merge(lock, lock, lock); conflicts != nil || !Equal(merged, lock) {
			t.Fatalf("merging a lock with itself: %v", conflicts)
		}
	})
}
