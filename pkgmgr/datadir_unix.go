//go:build unix

package pkgmgr

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"syscall"
)

var errReadOnlyFS error = syscall.EROFS

func platformDataHome(getenv func(string) string) (string, error) {
	if runtime.GOOS != "darwin" {
		// The XDG specification ignores relative values.
		if x := getenv("XDG_DATA_HOME"); filepath.IsAbs(x) {
			return x, nil
		}
	}
	home := getenv("HOME")
	if !filepath.IsAbs(home) {
		u, err := user.Current()
		if err != nil || !filepath.IsAbs(u.HomeDir) {
			return "", ErrNoHome
		}
		home = u.HomeDir
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Application Support"), nil
	}
	return filepath.Join(home, ".local", "share"), nil
}

// checkDataDir refuses a data directory that somebody else could change: it must
// belong to the user, give others no access, and no ancestor may be writable by
// others without the sticky bit.
func checkDataDir(path string) error {
	uid := os.Geteuid()
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("data directory: %w", err)
	default:
		st, _ := info.Sys().(*syscall.Stat_t)
		switch {
		case !info.IsDir():
			return &UnsafeDirectory{path, "is not a directory"}
		case int(st.Uid) != uid:
			return &UnsafeDirectory{path, fmt.Sprintf("belongs to user %d, not to you (user %d)", st.Uid, uid)}
		case info.Mode().Perm()&0o077 != 0:
			return &UnsafeDirectory{path, fmt.Sprintf("has mode %04o; others must have no access (chmod 700)", info.Mode().Perm())}
		}
	}
	resolved, err := resolveExisting(path)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	for dir := filepath.Dir(resolved); ; dir = filepath.Dir(dir) {
		info, err := os.Lstat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("data directory: %w", err)
		}
		st, _ := info.Sys().(*syscall.Stat_t)
		others := info.Mode().Perm() & 0o022
		if st.Gid == st.Uid {
			others &^= 0o020 // a user-private group: its only member is the owner
		}
		if others != 0 && info.Mode()&os.ModeSticky == 0 {
			return &UnsafeDirectory{dir, fmt.Sprintf("can be written by others (mode %04o, no sticky bit)", info.Mode().Perm())}
		}
		if int(st.Uid) != uid && st.Uid != 0 {
			return &UnsafeDirectory{dir, fmt.Sprintf("belongs to user %d, who could replace what is below it", st.Uid)}
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// resolveExisting resolves symlinks of the part of path that exists.
func resolveExisting(path string) (string, error) {
	rest := ""
	for p := path; ; {
		real, err := filepath.EvalSymlinks(p)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !errors.Is(err, fs.ErrNotExist) || p == filepath.Dir(p) {
			return "", err
		}
		rest = filepath.Join(filepath.Base(p), rest)
		p = filepath.Dir(p)
	}
}
