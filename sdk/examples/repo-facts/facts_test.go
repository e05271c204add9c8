package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/plugintest"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

const mit = `MIT License

Permission is hereby granted, free of charge, to any person
obtaining a copy of this software, to deal in it without restriction. The above copyright notice and this
permission notice shall be included in all copies or substantial portions of it.`

// project writes files below a new directory.
func project(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func look(t *testing.T, root string, b bounds) plugin.InspectResult {
	t.Helper()
	c := plugintest.Open(t, plugintest.Config{Manifest: plugin.MustParseManifest(manifestJSON), Handler: facts{b}},
		plugin.ScopeMetadataRead, plugin.ScopeFilesRead)
	r, err := c.Inspect(t.Context(), plugin.Project{ID: "p", DisplayName: "P", Root: root})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// values maps the facts' ids to "value [source] (warning)".
func values(r plugin.InspectResult) map[string]string {
	m := map[string]string{}
	for _, f := range r.Facts {
		v := f.Value + " [" + f.Source + "]"
		if f.Warning != "" {
			v += " (" + f.Warning + ")"
		}
		if m[f.ID] != "" {
			v = m[f.ID] + "; " + v
		}
		m[f.ID] = v
	}
	return m
}

func expect(t *testing.T, got map[string]string, want map[string]string) {
	t.Helper()
	for id, w := range want {
		if got[id] != w {
			t.Errorf("%s: %q, want %q", id, got[id], w)
		}
	}
}

func TestInspect(t *testing.T) {
	root := project(t, map[string]string{
		"go.mod": "module m\n", "cmd/a.go": strings.Repeat("x", 60), "cmd/b.go": strings.Repeat("x", 30), "web/a.ts": "0123456789",
		"Makefile": "all:\n", "LICENSE": mit, "LICENSES/CC-BY-4.0.txt": "any", "license.go": "package m\n",
		".git/HEAD": "ref: refs/heads/topic/x\n", ".git/refs/heads/topic/x": commit + "\n", ".git/objects/big": strings.Repeat("x", 9999),
		"node_modules/a/index.js": "x", "web/node_modules/b/index.js": "x",
	})
	r := look(t, root, defaultBounds)
	expect(t, values(r), map[string]string{
		"size.files":          "8 [.]",
		"size.directories":    "3 [.]",
		"size.largest":        "LICENSE, " + size(int64(len(mit))) + " [LICENSE]",
		"language.go":         "3 files, 100 B, 87.0 % [.]",
		"language.typescript": "1 file, 10 B, 8.7 % [.]",
		"language.javascript": "",
		"build.go-module":     "go.mod [go.mod]",
		"build.make":          "Makefile [Makefile]",
		"vcs.kind":            "git [.git]",
		"vcs.branch":          "topic/x [.git/HEAD]",
		"vcs.head":            commit + " [.git/refs/heads/topic/x]",
		"licence":             "MIT [LICENSE]; CC-BY-4.0 [LICENSES/CC-BY-4.0.txt]",
	})
	if want := "mostly Go, 8 files, 386 B,"; !strings.HasPrefix(r.Summary, want) || !strings.HasSuffix(r.Summary, "on branch topic/x, licence MIT, CC-BY-4.0") {
		t.Errorf("summary %q", r.Summary)
	}
	if len(r.Warnings) != 0 || len(r.Actions) != 1 || r.Actions[0].ID != "write-inventory" {
		t.Errorf("warnings %q, actions %+v", r.Warnings, r.Actions)
	}
}

func TestInspectNothing(t *testing.T) {
	r := look(t, t.TempDir(), defaultBounds)
	expect(t, values(r), map[string]string{
		"size.files": "0 [.]", "size.bytes": "0 [.]", "vcs.kind": "none [.] (looked at the project's root only)",
	})
	if r.Summary != "0 files, 0 B" || len(r.Warnings) != 1 {
		t.Errorf("%q, %q", r.Summary, r.Warnings)
	}
}

func TestInspectWithoutFiles(t *testing.T) {
	c := plugintest.Open(t, plugintest.Config{Manifest: plugin.MustParseManifest(manifestJSON), Handler: facts{defaultBounds}}, plugin.ScopeMetadataRead)
	r, err := c.Inspect(t.Context(), plugin.Project{ID: "p-7", DisplayName: "Seven"})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, values(r), map[string]string{"project.id": "p-7 [host]", "project.name": "Seven [host]", "size.files": ""})
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "project.files.read") {
		t.Errorf("warnings %q", r.Warnings)
	}
}

func TestVersionControl(t *testing.T) {
	for name, tc := range map[string]struct{ files, want map[string]string }{
		"packed": {
			map[string]string{".git/HEAD": "ref: refs/heads/main\n", ".git/packed-refs": "# pack-refs\n" + strings.Repeat("f", 40) + " refs/heads/mainline\n" + commit + " refs/heads/main\n"},
			map[string]string{"vcs.branch": "main [.git/HEAD]", "vcs.head": commit + " [.git/packed-refs]"},
		},
		"detached": {
			map[string]string{".git/HEAD": commit + "\n"},
			map[string]string{"vcs.head": commit + " [.git/HEAD] (detached: on no branch)", "vcs.branch": ""},
		},
		"unborn": {
			map[string]string{".git/HEAD": "ref: refs/heads/main\n"},
			map[string]string{"vcs.branch": "main [.git/HEAD] (no commit yet)", "vcs.head": ""},
		},
		"escape": {
			map[string]string{".git/HEAD": "ref: refs/heads/../../../secret\n"},
			map[string]string{"vcs.kind": "git [.git] (its references are stored in a form that is not understood)", "vcs.branch": ""},
		},
		"reftable": {
			map[string]string{".git/HEAD": "ref: refs/heads/.invalid\n"},
			map[string]string{"vcs.kind": "git [.git] (its references are stored in a form that is not understood)"},
		},
		"garbage": {
			map[string]string{".git/HEAD": "\x00\xff"},
			map[string]string{"vcs.kind": "git [.git] (its HEAD is not understood)"},
		},
		"huge": {
			map[string]string{".git/HEAD": strings.Repeat("a", 9000)},
			map[string]string{"vcs.kind": "git [.git] (its HEAD cannot be read)"},
		},
		"linked": {
			map[string]string{".git": "gitdir: /elsewhere\n"},
			map[string]string{"vcs.kind": "git [.git] (the git directory is elsewhere (a linked work tree or a submodule) and was not looked at)"},
		},
		"mercurial": {map[string]string{".hg/x": ""}, map[string]string{"vcs.kind": "mercurial [.hg]"}},
	} {
		t.Run(name, func(t *testing.T) { expect(t, values(look(t, project(t, tc.files), defaultBounds)), tc.want) })
	}
}

func TestLicences(t *testing.T) {
	bsd := "Redistribution and use in source and binary forms, with or without\nmodification, are permitted provided that"
	isc := "Permission to use, copy, modify, and/or distribute this software for any\npurpose with or without fee is hereby granted"
	for text, want := range map[string]string{
		mit: "MIT",
		"> " + strings.ReplaceAll(mit, "\n", "\n> "): "MIT",
		strings.Split(mit, "The above")[0]:           "MIT-0",
		bsd + " ...":                                 "BSD-2-Clause",
		bsd + " ... Neither the name of the holder":  "BSD-3-Clause",
		isc + ".": "0BSD",
		isc + ", provided that the above\ncopyright notice and this permission notice appear in all copies.": "ISC",
		"                  Apache License\n           Version 2.0, January 2004\n":                           "Apache-2.0",
		"GNU GENERAL PUBLIC LICENSE\n   Version 3, 29 June 2007":                                             "GPL-3.0",
		"GNU LESSER GENERAL PUBLIC LICENSE\n   Version 3, 29 June 2007":                                      "LGPL-3.0",
		"GNU AFFERO GENERAL PUBLIC LICENSE\n   Version 3, 19 November 2007":                                  "AGPL-3.0",
		"GNU GENERAL PUBLIC LICENSE\n   Version 2, June 1991":                                                "GPL-2.0",
		"Apache License Version 2.0, January 2004 or\n" + mit:                                                "Apache-2.0 and MIT",
		"All rights reserved.": "",
	} {
		if got := strings.Join(licences(text), " and "); got != want {
			t.Errorf("%.40q: %q, want %q", text, got, want)
		}
	}
	r := values(look(t, project(t, map[string]string{"COPYING.md": "All rights reserved."}), defaultBounds))
	expect(t, r, map[string]string{"licence": "unknown [COPYING.md] (the text is not one that is recognized)"})
}

func TestBounds(t *testing.T) {
	root := project(t, map[string]string{"a/1.go": "x", "a/2.go": "x", "b/3.go": "x", "c/d/e/f/4.go": "x"})
	tight := defaultBounds
	tight.entries = 3 // a, a/1.go, a/2.go
	r := look(t, root, tight)
	expect(t, values(r), map[string]string{"size.files": "2 [.] (incomplete: stopped after 3 entries)"})
	if len(r.Warnings) != 2 || !strings.Contains(r.Warnings[1], "the walk is incomplete: stopped after 3 entries") {
		t.Errorf("warnings %q", r.Warnings)
	}
	shallow := defaultBounds
	shallow.depth = 3
	r = look(t, root, shallow)
	expect(t, values(r), map[string]string{"size.files": "3 [.] (incomplete: directories more than 3 levels deep were left out)"})
	hasty := defaultBounds
	hasty.time = time.Nanosecond
	if r = look(t, root, hasty); !strings.Contains(strings.Join(r.Warnings, ";"), "stopped after 1ns") {
		t.Errorf("warnings %q", r.Warnings)
	}
}

func TestCancelledInspect(t *testing.T) {
	root, err := os.OpenRoot(project(t, map[string]string{"a": ""}))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := inspect(ctx, root, defaultBounds); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
