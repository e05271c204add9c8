//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestStrangeEntries holds that links are not followed, that a pipe does not
// make the plugin wait, and that odd names come out as valid text.
func TestStrangeEntries(t *testing.T) {
	outside := project(t, map[string]string{"secret.go": strings.Repeat("x", 5000), "LICENSE": mit})
	root := project(t, map[string]string{"a.go": "x"})
	for _, err := range []error{
		os.Symlink(outside, filepath.Join(root, "link")),
		os.Symlink(filepath.Join(outside, "LICENSE"), filepath.Join(root, "LICENSE")),
		os.Symlink("/etc", filepath.Join(root, ".git")),
		syscall.Mkfifo(filepath.Join(root, "COPYING"), 0o644),
		os.WriteFile(filepath.Join(root, "bad\xffname\n.md"), []byte(strings.Repeat("x", 50)), 0o644),
	} {
		if err != nil {
			t.Skipf("the file system does not take these names: %v", err)
		}
	}
	r := look(t, root, defaultBounds)
	expect(t, values(r), map[string]string{
		"size.files": "2 [.]", "size.bytes": "51 [.]", "size.links": "3 [.] (not followed)", "licence": "",
		"size.largest": "bad\uFFFDname\n.md, 50 B [bad\uFFFDname\n.md]",
	})
	if !strings.Contains(strings.Join(r.Warnings, ";"), "1 entry is neither file, directory nor link") {
		t.Errorf("warnings %q", r.Warnings)
	}
}

func TestUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	root := project(t, map[string]string{"a/b": "x", "c": "y"})
	if err := os.Chmod(filepath.Join(root, "a"), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(filepath.Join(root, "a"), 0o755) })
	r := look(t, root, defaultBounds)
	if !strings.Contains(strings.Join(r.Warnings, ";"), "cannot read a") {
		t.Errorf("warnings %q", r.Warnings)
	}
}
