//go:build unix

package pkgmgr

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestCheckOwners(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := checkOwners(dir); err != nil {
		t.Errorf("own files: %v", err)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	if err := os.Lchown(file, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	var malformed *Malformed
	if err := checkOwners(dir); !errors.As(err, &malformed) || malformed.File != file {
		t.Errorf("another user's file: %v", err)
	}
}
