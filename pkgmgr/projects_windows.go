package pkgmgr

import "io/fs"

// writableByOthers reports nothing: access control lists are not read here.
func writableByOthers(fs.FileInfo) bool { return false }
