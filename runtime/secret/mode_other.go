//go:build !unix

package secret

import "io/fs"

// exposed is none: who can read a file is said elsewhere on this system.
const exposed fs.FileMode = 0
