package verify

import "io/fs"

// mayStart relies on the access rights of the directory that the program lies in.
func mayStart(_, _ fs.FileInfo) error { return nil }
