package pkgmgr

import (
	"errors"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/windows"
)

var errReadOnlyFS error = windows.ERROR_WRITE_PROTECT

func platformDataHome(getenv func(string) string) (string, error) {
	if local := getenv("LOCALAPPDATA"); filepath.IsAbs(local) {
		return local, nil
	}
	return "", errors.Join(ErrNoHome, errors.New("LOCALAPPDATA is unset"))
}

func platformConfigHome(getenv func(string) string) (string, error) { return platformDataHome(getenv) }

// exposure relies on the access control list of the user's profile.
func exposure(fs.FileInfo) string { return "" }

// checkDataDir relies on the access control list that the user's profile
// directory passes on to what is created below it.
func checkDataDir(string) error { return nil }

// checkUserWay relies on the access control list of the user's profile.
func checkUserWay(string) error { return nil }

// checkOwners relies on the access control list of the data directory.
func checkOwners(string) error { return nil }
