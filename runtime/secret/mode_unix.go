//go:build unix

package secret

import "io/fs"

// exposed are the modes under which others can read a file.
const exposed fs.FileMode = 0o077
