//go:build unix

package pkgmgr

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
	"github.com/switchyard-plugins/switchyard/verify/revlist"
)

// sign adds aProver's signatures over a file in the published directory.
func (f *fleet) sign(name string, by ...string) {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	text, err := os.ReadFile(path)
	must(f.t, err)
	bundles, err := os.ReadFile(path + BundlesSuffix)
	if !errors.Is(err, os.ErrNotExist) {
		must(f.t, err)
	}
	for _, one := range by {
		bundles = fmt.Appendf(bundles, "%s %s\n", one, digest.Of(text))
	}
	must(f.t, os.WriteFile(path+BundlesSuffix, bundles, 0o644))
}

func (f *fleet) nextRoot(c revlist.RootChange, keys ...string) (*Rotation, error) {
	return f.RotateRoot(f.ctx, f.dir, c, keys)
}

func addList(names ...string) revlist.RootChange {
	var c revlist.RootChange
	for _, n := range names {
		c.List.Add = append(c.List.Add, keyOfTest(n))
	}
	return c
}

func (f *fleet) there(want ...string) {
	f.t.Helper()
	names, err := readNames(f.dir)
	must(f.t, err)
	slices.Sort(names)
	if !slices.Equal(names, want) {
		f.t.Errorf("got  %q\nwant %q", names, want)
	}
}

func TestRotateRoot(t *testing.T) {
	f := newFleet(t)
	f.follow()
	first, err := os.ReadFile(filepath.Join(f.dir, RootFile))
	must(t, err)
	list, err := os.ReadFile(filepath.Join(f.dir, ListFile))
	must(t, err)
	out, err := f.nextRoot(addList("list2"))
	must(t, err)
	if out.Old.Version != 1 || out.New.Version != 2 || out.Replaced != "" || out.New.SameLists(out.Old) {
		t.Errorf("%+v", out)
	}
	f.there(ListFile, ListFile+BundlesSuffix, "root.1.json", "root.1.json"+BundlesSuffix, RootFile)
	kept, err := os.ReadFile(out.Kept)
	if err != nil || !bytes.Equal(kept, first) {
		t.Errorf("the root before was not kept: %v", err)
	}
	if now, err := os.ReadFile(filepath.Join(f.dir, ListFile)); err != nil || !bytes.Equal(now, list) {
		t.Errorf("the list was touched: %v", err)
	}

	// Not finished: the next one takes its place, and no version is left out.
	f.sign(RootFile, "thief")
	again, err := f.nextRoot(addList("list3"))
	must(t, err)
	if again.New.Version != 2 || again.Replaced != out.Digest || slices.Contains(again.New.ListSigners, keyOfTest("list2")) {
		t.Errorf("%+v", again)
	}
	f.sign(RootFile, "root")
	u, err := f.UpdateLists(f.ctx, f.dir, "")
	must(t, err)
	if !u.RootAdopted || u.RootDigest != again.Digest {
		t.Errorf("%+v", u)
	}
	third, err := f.nextRoot(revlist.RootChange{Root: revlist.RoleChange{Add: []verify.Signer{keyOfTest("root2")}, Threshold: 2}})
	must(t, err)
	if third.New.Version != 3 || third.Kept != filepath.Join(f.dir, "root.2.json") || third.Replaced != "" {
		t.Errorf("%+v", third)
	}
	// A root that its own signers alone signed is none: those before must, too.
	coup, err := f.nextRoot(revlist.RootChange{Root: revlist.RoleChange{Add: []verify.Signer{keyOfTest("thief")}, Remove: []verify.Signer{keyOfTest("root")}}})
	must(t, err)
	f.sign(RootFile, "thief")
	if again, err = f.nextRoot(addList("list4")); err != nil || again.New.Version != 3 || again.Replaced != coup.Digest || slices.Contains(again.New.RootSigners, keyOfTest("thief")) {
		t.Errorf("%+v, %v", again, err)
	}
	// Half of those who must sign are not enough for another to follow.
	_, err = f.nextRoot(revlist.RootChange{Root: revlist.RoleChange{Add: []verify.Signer{keyOfTest("root2")}, Threshold: 2}})
	must(t, err)
	f.sign(RootFile, "root")
	if again, err = f.nextRoot(addList("list4")); err != nil || again.New.Version != 3 {
		t.Errorf("%+v, %v", again, err)
	}
}

func TestRotateRootRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *fleet)
		code   string
	}{
		"unsigned":          {func(f *fleet) { must(t, os.Remove(filepath.Join(f.dir, RootFile+BundlesSuffix))) }, CodeRootSigners},
		"signed by a thief": {func(f *fleet) { f.publish([]string{"thief", "list"}, nil) }, CodeRootSigners},
		"too few signed": {func(f *fleet) {
			f.root.RootSigners, f.root.RootThreshold = append(f.root.RootSigners, keyOfTest("root2")), 2
			f.publish([]string{"root", "root"}, nil)
		}, CodeRootSigners},
		"another root is kept": {func(f *fleet) {
			must(t, os.WriteFile(filepath.Join(f.dir, "root.1.json"), []byte("{}"), 0o644))
		}, "root.version"},
		"the root before does not have the version before": {func(f *fleet) {
			f.put("root.1.json", []string{"root"})
			f.root.Version = 2
			f.put("root.1.json", []string{"root"})
			f.put(RootFile, nil)
		}, "root.version"},
		"the root before is unsigned": {func(f *fleet) {
			f.put("root.1.json", nil)
			f.root.Version = 2
			f.put(RootFile, []string{"thief"})
		}, CodeRootSigners},
	} {
		f := newFleet(t)
		f.publish([]string{"root"}, []string{"list"})
		c.change(f)
		before, err := os.ReadFile(filepath.Join(f.dir, RootFile))
		must(t, err)
		_, err = f.nextRoot(addList("list2"))
		if fault := as[*RootFault](t, err); fault.Code != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
		if now, err := os.ReadFile(filepath.Join(f.dir, RootFile)); err != nil || !bytes.Equal(now, before) {
			t.Errorf("%s: the root was changed (%v)", name, err)
		}
	}
	f := newFleet(t)
	_, err := f.nextRoot(addList("list2"))
	as[*NotFound](t, err)
	f.publish([]string{"root"}, []string{"list"})
	_, err = f.nextRoot(revlist.RootChange{})
	as[*revlist.Error](t, err)
	f.now = f.root.ExpiresAt
	_, err = f.nextRoot(addList("list2"))
	if fault := as[*RootFault](t, err); fault.Code != "root.expired" {
		t.Error(err)
	}
	renewed := addList("list2")
	renewed.ExpiresAt = f.now.Add(time.Hour)
	_, err = f.nextRoot(renewed) // an expired root may still be followed by another
	must(t, err)
	must(t, os.WriteFile(filepath.Join(f.dir, RootFile), []byte("{"), 0o644))
	_, err = f.nextRoot(addList("list2"))
	as[*revlist.Error](t, err)
}

// put writes the root under a name, signed by those who are named.
func (f *fleet) put(name string, by []string) {
	f.t.Helper()
	var text bytes.Buffer
	must(f.t, revlist.WriteRoot(&text, f.root))
	must(f.t, os.WriteFile(filepath.Join(f.dir, name), text.Bytes(), 0o644))
	if err := os.Remove(filepath.Join(f.dir, name+BundlesSuffix)); !errors.Is(err, os.ErrNotExist) {
		must(f.t, err)
	}
	f.sign(name, by...)
}

// publicKey is a public key as far as package verify looks into it.
func publicKey(name string) (text string, signer verify.Signer) {
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: []byte(name)})), keyOfTest(name)
}

// Keys beside the list stay as long as something there is proved by them.
func TestRotateRootKeepsKeysInUse(t *testing.T) {
	f := newFleet(t)
	f.publish([]string{"root"}, []string{"list"})
	names := map[string]string{}
	for _, one := range []string{"list", "root", "list2", "list3", "root2"} {
		text, signer := publicKey(one)
		names[one] = KeyFile(signer.Key)
		if one == "list" || one == "root" {
			must(t, os.WriteFile(filepath.Join(f.dir, names[one]), []byte(text), 0o644))
		}
	}
	must(t, os.WriteFile(filepath.Join(f.dir, "other.pub"), []byte("whose?"), 0o644))
	turn := func(old, with string, list bool, by ...string) {
		t.Helper()
		text, signer := publicKey(with)
		role := revlist.RoleChange{Add: []verify.Signer{signer}, Remove: []verify.Signer{keyOfTest(old)}}
		c := revlist.RootChange{Root: role}
		if list {
			c = revlist.RootChange{List: role}
		}
		_, err := f.nextRoot(c, text)
		must(t, err)
		f.sign(RootFile, by...)
	}
	want := func(keys ...string) {
		t.Helper()
		for one, file := range names {
			if slices.Contains(keys, one) != exists(filepath.Join(f.dir, file)) {
				t.Errorf("%s is there: %v", one, exists(filepath.Join(f.dir, file)))
			}
		}
	}
	turn("list", "list2", true, "root")
	want("list", "list2", "root") // the rotation may be taken back
	turn("root", "root2", false, "root", "root2")
	want("list2", "root", "root2") // root signed the earlier roots
	turn("list2", "list3", true, "root2")
	want("list2", "list3", "root", "root2")
	if !exists(filepath.Join(f.dir, "other.pub")) {
		t.Error("a key that nobody rotated is gone")
	}
}

// A rotation that stops at any step is completed by the same call, and no machine is
// told anything wrong meanwhile.
func TestRotateRootStopsAtEveryStep(t *testing.T) {
	stop := errors.New("stop")
	text, signer := publicKey("list2")
	change := revlist.RootChange{List: revlist.RoleChange{Add: []verify.Signer{signer}, Remove: []verify.Signer{keyOfTest("list")}}}
	for n := 1; ; n++ {
		f := newFleet(t)
		f.follow()
		reached := false
		restore := stepAt(n, func(string) error { reached = true; return stop })
		_, err := f.nextRoot(change, text)
		restore()
		if !reached {
			if must(t, err); n < 6 {
				t.Fatalf("only %d steps", n)
			}
			break
		}
		if !errors.Is(err, stop) {
			t.Fatalf("step %d: %v", n, err)
		}
		if kept := filepath.Join(f.dir, "root.1.json"); exists(kept) && !exists(kept+BundlesSuffix) {
			t.Fatalf("step %d: the root before lies there without its signatures", n)
		}
		if u, err := f.UpdateLists(f.ctx, f.dir, ""); err == nil && u.RootAdopted {
			t.Fatalf("step %d: an unsigned root was adopted", n)
		}
		out, err := f.nextRoot(change, text)
		if err != nil || out.New.Version != 2 {
			t.Fatalf("after step %d: %+v, %v", n, out, err)
		}
		f.sign(RootFile, "root")
		f.now = f.now.Add(time.Minute)
		f.bump()
		var list bytes.Buffer
		must(t, revlist.Write(&list, f.list, versionRanges))
		must(t, os.WriteFile(filepath.Join(f.dir, ListFile), list.Bytes(), 0o644))
		f.sign(ListFile, "list2")
		if u, err := f.UpdateLists(f.ctx, f.dir, ""); err != nil || !u.RootAdopted || u.RootDigest != out.Digest {
			t.Fatalf("after step %d: %+v, %v", n, u, err)
		}
	}
}
