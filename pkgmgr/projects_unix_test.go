//go:build unix

package pkgmgr

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/lockfile/textfile"
)

// TestTrustOfWhatOthersControl: another user's directory is not trusted, and one that
// others can write only with a note.
func TestTrustOfWhatOthersControl(t *testing.T) {
	for _, c := range []struct {
		name    string
		uid     int
		gid     int
		mode    os.FileMode
		refused bool
		noted   bool
	}{
		{"own", 0, 0, 0o755, false, false},
		{"of a private group", 0, 0, 0o775, false, false},
		{"of a group", 0, 12345, 0o775, false, true},
		{"for all", 0, 0, 0o777, false, true},
		{"for all, sticky", 0, 0, 0o777 | os.ModeSticky, false, false},
		{"another user's", 12345, 12345, 0o755, true, false},
		{"another user's, for all", 12345, 0, 0o777, true, false},
	} {
		if os.Geteuid() != 0 && (c.uid != 0 || c.gid != 0 || c.mode&0o020 != 0) {
			t.Logf("%s: left out: only root can give a directory away", c.name)
			continue
		}
		s := newSite(t)
		var notes []string
		s.on.Note = func(text string) { notes = append(notes, text) }
		dir := t.TempDir()
		if c.uid != 0 || c.gid != 0 {
			must(t, os.Chown(dir, c.uid, c.gid))
		}
		must(t, os.Chmod(dir, c.mode))
		root, err := ResolveProject(dir)
		must(t, err)
		_, _, err = s.TrustProject(s.ctx, root)
		if errors.Is(err, textfile.ErrForeign) != c.refused || !c.refused && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		list, err := s.Projects(s.ctx)
		must(t, err)
		if (len(list) == 0) != c.refused {
			t.Errorf("%s: trusted: %v", c.name, list)
		}
		if noted := len(notes) == 1 && strings.Contains(notes[0], root); noted != c.noted || len(notes) > 1 {
			t.Errorf("%s: notes %q", c.name, notes)
		}
	}
}
