//go:build unix

package pkgmgr

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/shebang"
)

func TestGC(t *testing.T) {
	w, fresh, here := ready(t)
	_, err := fresh.InstallLocked(w.ctx, w.lock(), w.entry("x"))
	must(t, err)
	two := sample{id: "x", version: "2.0.0"}
	fresh.install(two.archive(t))
	running := sample{id: "x", version: "3.0.0"}
	_, err = fresh.Install(w.ctx, running.archive(t), InstallOptions{Default: DefaultKeep})
	must(t, err)
	fresh.trust("x@3.0.0")
	fresh.enable("x@3.0.0")
	call, err := fresh.Consider(w.ctx, CallRequest{Ref: Ref{ID: "x", Version: "3.0.0"}, Method: MethodHealth})
	must(t, err)
	archived := func() int { names, _ := readNames(fresh.join(archivesDir)); return len(names) }

	// The lock of the directory that one stands in, and of a known project.
	removed, err := fresh.GC(w.ctx, GCOptions{Locks: []*Lock{w.lock(), nil}, DryRun: true})
	if err != nil || len(removed) != 0 {
		t.Errorf("%+v, %v", removed, err)
	}
	_, _, err = fresh.TrustProject(w.ctx, w.root)
	must(t, err)
	removed, err = fresh.GC(w.ctx, GCOptions{})
	if err != nil || len(removed) != 0 || archived() != 3 {
		t.Errorf("%+v, %v", removed, err)
	}
	call.Call.End()
	for _, dry := range []bool{true, false} {
		removed, err = fresh.GC(w.ctx, GCOptions{DryRun: dry})
		must(t, err)
		if len(removed) != 2 || removed[0].Package != running.digest(t) || removed[0].Version != "3.0.0" || removed[0].Bytes == 0 || removed[1].ID != "" {
			t.Errorf("%+v", removed)
		}
		if exists(removed[0].Path) != dry || exists(removed[1].Path) != dry {
			t.Errorf("dry %v: %+v", dry, removed)
		}
	}
	fresh.sound()

	// A lock that cannot be read keeps everything.
	must(t, os.WriteFile(w.project().LockPath(), []byte("<<<<<<< ours\n"), 0o644))
	_, err = fresh.GC(w.ctx, GCOptions{})
	if !errors.Is(err, lockfile.ErrConflict) {
		t.Error(err)
	}
	if !exists(fresh.storePath(here.digest(t))) {
		t.Error("a locked version was removed")
	}
	must(t, os.Remove(w.project().LockPath()))
	removed, err = fresh.GC(w.ctx, GCOptions{})
	if err != nil || len(removed) != 2 || removed[0].Package != here.digest(t) {
		t.Errorf("%+v, %v", removed, err)
	}
	fresh.sound()

	// Quarantine is left alone.
	_, err = fresh.Revoke(w.ctx, Denial{PluginID: "x", Reason: "r"})
	must(t, err)
	removed, err = fresh.GC(w.ctx, GCOptions{})
	if err != nil || len(removed) != 0 {
		t.Errorf("%+v, %v", removed, err)
	}
	_, err = fresh.Unrevoke(w.ctx, "x")
	must(t, err)
	fresh.sound()
}

func TestPack(t *testing.T) {
	w := newWorkspace(t, "")
	here, _, thereName := programs()
	for _, p := range []sample{here, {id: "x", version: "1.0.0"}} {
		dir := p.dir(t)
		t.Chdir(dir)
		want := "x-1.0.0-" + hostName() + ".tar.zst"
		if p.script == "" {
			want = "x-1.0.0.tar.zst"
		}
		var first digest.Digest
		for i := range 3 {
			t.Chdir(t.TempDir())
			r, err := w.Pack(w.ctx, dir, PackOptions{})
			must(t, err)
			if i == 0 {
				first = r.Archive
			}
			if r.Path != want || r.Archive != first || r.Contents.Package != p.digest(t) {
				t.Errorf("%+v", r)
			}
			if sum, err := hashFile(r.Path); err != nil || sum != r.Archive {
				t.Errorf("%s, %v", sum, err)
			}
		}
		// In the directory itself it would be part of the next package.
		t.Chdir(dir)
		for _, out := range []string{"", "other.tar.gz", filepath.Join(dir, "bin", "other.zip")} {
			_, err := w.Pack(w.ctx, dir, PackOptions{Out: out})
			as[*InsidePackage](t, err)
		}
		if name, inside, err := PackName("."); name != want || !inside || err != nil {
			t.Errorf("%q, %v, %v", name, inside, err)
		}
		must(t, os.WriteFile(".switchyardignore", []byte("*.tar.zst\nout/\n"), 0o644))
		must(t, os.Mkdir("out", 0o755))
		for _, out := range []string{"", "out/x.zip"} {
			r, err := w.Pack(w.ctx, ".", PackOptions{Out: out})
			must(t, err)
			if r.Contents.Package != p.digest(t) {
				t.Errorf("%q: %+v", out, r.Contents.Files)
			}
		}
		if _, inside, err := PackName("."); inside || err != nil {
			t.Errorf("%v, %v", inside, err)
		}
	}
	dir := here.dir(t)
	for out, check := range map[string]func(err error){
		"x.rar":          func(err error) { mustNot(t, err) },
		"no/where.zip":   func(err error) { mustNot(t, err) },
		"x-1.0.0.tar.gz": func(err error) { must(t, err) },
	} {
		_, err := w.Pack(w.ctx, dir, PackOptions{Out: filepath.Join(t.TempDir(), out)})
		check(err)
	}
	_, err := w.Pack(w.ctx, dir, PackOptions{Platform: strings.ReplaceAll(thereName, "-", "/")})
	as[*WrongPlatform](t, err)
	_, err = w.Pack(w.ctx, filepath.Join(dir, "none"), PackOptions{})
	as[*NotFound](t, err)
	_, err = w.Pack(w.ctx, here.archive(t), PackOptions{})
	as[*Malformed](t, err)
	_, err = w.Pack(w.ctx, sample{id: "x", version: "1:2"}.dir(t), PackOptions{})
	as[*Unnamable](t, err)
	bad := here.dir(t)
	must(t, os.Remove(filepath.Join(bad, "bin/tool")))
	_, err = w.Pack(w.ctx, bad, PackOptions{Out: filepath.Join(t.TempDir(), "x.zip")})
	as[*Malformed](t, err)
	if names, _ := readNames(w.join(stagingDir)); len(names) > 0 {
		t.Errorf("staging holds %q", names)
	}
	err = filepath.WalkDir(w.root, func(p string, d fs.DirEntry, err error) error {
		if strings.HasPrefix(d.Name(), ".switchyard-") {
			t.Errorf("%s is left", p)
		}
		return err
	})
	must(t, err)
}

func TestHeads(t *testing.T) {
	pe := make([]byte, 256)
	copy(pe, "MZ")
	pe[60] = 128
	copy(pe[128:], "PE\x00\x00\x64\x86")
	far := slices.Clone(pe)
	far[63] = 0x7f
	for text, want := range map[string]executableHead{
		elf(amd64):                             {Platform: "linux/amd64"},
		elf(arm64):                             {Platform: "linux/arm64"},
		elf(1):                                 {},
		"\x7fELF":                              {},
		"#!/usr/bin/env python3\nprint()":      {Platform: lockfile.Any, Interpreter: "/usr/bin/env python3"},
		"#!":                                   {Platform: lockfile.Any, Fault: shebang.ErrNoInterpreter},
		"#!/bin/sh\r\nexit\r\n":                {Platform: lockfile.Any, Fault: shebang.ErrCarriageReturn},
		"":                                     {},
		"MZ":                                   {},
		string(pe):                             {Platform: "windows/amd64"},
		string(far):                            {},
		"\xcf\xfa\xed\xfe\x0c\x00\x00\x01":     {Platform: "darwin/arm64"},
		"\xcf\xfa\xed\xfe\x07\x00\x00\x01rest": {Platform: "darwin/amd64"},
		"\xcf\xfa\xed\xfe\x00\x00\x00\x00":     {},
		"\xfe\xed\xfa\xcf\x01\x00\x00\x07":     {},
		strings.Repeat("a", 1024):              {},
	} {
		if got := parseHead([]byte(text)); got != want {
			t.Errorf("%q: %+v, want %+v", text[:min(len(text), 20)], got, want)
		}
	}
}
