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
	"strings"
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
	home, err := userHome(getenv)
	if err != nil {
		return "", err
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Application Support"), nil
	}
	return filepath.Join(home, ".local", "share"), nil
}

func platformConfigHome(getenv func(string) string) (string, error) {
	if runtime.GOOS == "darwin" {
		return platformDataHome(getenv)
	}
	if x := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(x) {
		return x, nil
	}
	home, err := userHome(getenv)
	return filepath.Join(home, ".config"), err
}

// userHome is HOME, else what the user database says.
func userHome(getenv func(string) string) (string, error) {
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return home, nil
	}
	u, err := user.Current()
	if err != nil || !filepath.IsAbs(u.HomeDir) {
		return "", ErrNoHome
	}
	return u.HomeDir, nil
}

// exposure says how somebody else than the user or root could change a file, or "".
func exposure(info fs.FileInfo) string {
	uid := int(info.Sys().(*syscall.Stat_t).Uid)
	switch {
	case uid != 0 && uid != os.Geteuid():
		return fmt.Sprintf("belongs to another user (uid %d)", uid)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Sprintf("can be written by others (mode %04o)", info.Mode().Perm())
	}
	return ""
}

// checkDataDir refuses a data directory that somebody else could change: it must
// belong to the user, give others no access, and no directory on the way to it may
// be writable by others without the sticky bit or belong to a third user.
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
	abs, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	return checkWay(abs, uid)
}

// checkUserWay is checkWay for what the user keeps elsewhere.
func checkUserWay(path string) error { return checkWay(path, os.Geteuid()) }

// maxLinks bounds the symbolic links on the way to the data directory.
const maxLinks = 40

// checkWay checks every directory that is passed on the way to path, those that
// symbolic links lead through included: whoever can write one of them can lead the
// way elsewhere. What does not exist yet will be the user's own.
func checkWay(path string, uid int) error {
	todo := strings.Split(filepath.Clean(path), "/")
	at := "/"
	for links := 0; len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		if err := checkPassed(at, uid); err != nil {
			return err
		}
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return fmt.Errorf("data directory: %w", err)
		case info.Mode()&fs.ModeSymlink == 0:
			at = next
			continue
		}
		if links++; links > maxLinks {
			return &UnsafeDirectory{path, "lies behind too many symbolic links"}
		}
		if st, _ := info.Sys().(*syscall.Stat_t); int(st.Uid) != uid && st.Uid != 0 {
			return &UnsafeDirectory{next, fmt.Sprintf("is a symbolic link of user %d", st.Uid)}
		}
		target, err := os.Readlink(next)
		if err != nil {
			return fmt.Errorf("data directory: %w", err)
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		todo = append(strings.Split(target, "/"), todo...)
	}
	return nil
}

// checkPassed checks one directory on the way.
func checkPassed(dir string, uid int) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	st, _ := info.Sys().(*syscall.Stat_t)
	others := info.Mode().Perm() & 0o022
	if st.Gid == st.Uid {
		others &^= 0o020 // a user-private group: its only member is the owner
	}
	switch {
	case others != 0 && info.Mode()&os.ModeSticky == 0:
		return &UnsafeDirectory{dir, fmt.Sprintf("can be written by others (mode %04o, no sticky bit)", info.Mode().Perm())}
	case int(st.Uid) != uid && st.Uid != 0:
		return &UnsafeDirectory{dir, fmt.Sprintf("belongs to user %d, who could replace what is below it", st.Uid)}
	}
	return nil
}

// checkOwners refuses a tree with a file or directory of another user: its owner
// could change it after the review, through any link to it.
func checkOwners(tree string) error {
	uid := os.Geteuid()
	return filepath.WalkDir(tree, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != uid && st.Uid != 0 {
			return &Malformed{Where: tree, File: p, Err: fmt.Errorf("belongs to user %d, who could change it after the review", st.Uid)}
		}
		return nil
	})
}
