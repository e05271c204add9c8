package project

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/switchyard-plugins/switchyard/lockfile/textfile"
)

const somebody = 12345

func TestFilesOfOthersAreRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	give := func(root string, names ...string) string {
		for _, name := range names {
			if err := os.Lchown(filepath.Join(root, name), somebody, -1); err != nil {
				t.Fatal(err)
			}
		}
		return root
	}
	for _, c := range []struct {
		name, root, start string
		want              error
	}{
		{"a configuration", give(tree(t, "switchyard.toml", "a/"), "switchyard.toml"), "a", ErrForeign},
		{"a lock beside one's own configuration", give(tree(t, "switchyard.toml", "switchyard.lock"), "switchyard.lock"), ".", ErrForeign},
		{"in somebody's directory", give(tree(t, "a/switchyard.toml", "a/b/"), "a", "a/switchyard.toml"), "a/b", ErrForeign},
		{"the walk ends in somebody's directory", give(tree(t, "switchyard.toml", "a/b/"), "a"), "a/b", ErrNone},
		{"one's own file in somebody's directory", give(tree(t, "a/switchyard.toml"), "a"), "a", nil},
		{"somebody's store", give(tree(t, "a/switchyard.toml", "a/.git/"), "a/.git"), "a", nil},
	} {
		_, err := Find(filepath.Join(c.root, c.start))
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		var owner *textfile.OwnerError
		if c.want == ErrForeign && (!errors.As(err, &owner) || owner.Owner != somebody) {
			t.Errorf("%s: %+v", c.name, owner)
		}
	}
}
