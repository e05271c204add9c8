package project

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestVersions(t *testing.T) {
	p := &Project{Root: t.TempDir()}
	for _, name := range []string{
		"dist/a-1.0.0.zip", "dist/a-1.10.0.zip", "dist/a-1.9.0.zip", "dist/a-1.10.0-rc.1.zip", "dist/a-nightly.zip", "dist/a-.zip",
		"dist/a-1.0.0.zip.sig", "dist/b-a-1.0.0.zip", "dist/A-7.0.0.zip", "dist/a-{os}.zip", "dist/a-1..0.zip",
		"dist/a-" + strings.Repeat("1", 65) + ".zip",
		"dist/p-1.0.0-linux-amd64", "dist/p-2.0.0-linux-arm64", "dist/p-3.0.0",
		"dist/t-1.0.0+1.0.0.zip", "dist/t-1.0.0+1.0.1.zip",
		"linux/amd64/c-1.0.0/plugin.json", "1.5.0",
	} {
		path := filepath.Join(p.Root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for source, want := range map[string][]string{
		"dist/a-{version}.zip":                {"nightly", "1.0.0", "1.9.0", "1.10.0-rc.1", "1.10.0"},
		"./dist/a-{version}.zip":              {"nightly", "1.0.0", "1.9.0", "1.10.0-rc.1", "1.10.0"},
		"dist/p-{version}-{os}-{arch}":        {"1.0.0"},
		"dist/t-{version}+{version}.zip":      {"1.0.0"},
		"{os}/{arch}/c-{version}":             {"1.0.0"},
		"linux/../dist/p-{version}-{os}-arm":  nil,
		"linux/../dist/b-a-{version}.zip":     {"1.0.0"},
		"dist/a-1.0.0.zip":                    nil,
		"dist/{version}/nothing-of-that.name": nil,
	} {
		got, err := p.Versions(source, "linux/amd64")
		if strings.Contains(source, "{version}/") {
			if !errors.Is(err, ErrOpen) {
				t.Errorf("%s: %v", source, err)
			}
			continue
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, want %q", source, got, err, want)
		}
	}
	if got, err := p.Versions("{version}", "linux/amd64"); err != nil || !slices.Contains(got, "1.5.0") || slices.Contains(got, "..") {
		t.Errorf("%q, %v", got, err)
	}
	for source, want := range map[string]error{
		"gone/a-{version}.zip":             fs.ErrNotExist,
		"https://h.example/a-{version}":    ErrOpen,
		"{version}/{version}":              ErrOpen,
		"{version}/a-{version}-{os}.zip":   ErrOpen,
		"dist/a-1.0.0.zip/x-{version}.zip": nil, // some error of the file system
	} {
		if _, err := p.Versions(source, "linux/amd64"); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", source, err, want)
		}
	}
	if _, err := p.Versions("dist/a-{version}-{os}.zip", ""); !errors.Is(err, ErrOpen) {
		t.Error(err)
	}
}

// A directory is looked through only up to a bound.
func TestVersionsInACrowdedDirectory(t *testing.T) {
	p := &Project{Root: t.TempDir()}
	add := func(i int) {
		f, err := os.Create(filepath.Join(p.Root, fmt.Sprintf("a-1.0.%d", i)))
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	for i := range MaxEntries {
		add(i)
	}
	if got, err := p.Versions("a-{version}", ""); err != nil || len(got) != MaxEntries {
		t.Errorf("%d, %v", len(got), err)
	}
	add(MaxEntries)
	if _, err := p.Versions("a-{version}", ""); !errors.Is(err, ErrCrowded) {
		t.Error(err)
	}
}
