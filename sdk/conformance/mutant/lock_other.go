//go:build !unix

package mutant

import "os"

// tryLock reports that nobody has the lock: without one, an abandoned claim is
// seen as such, and one that runs as abandoned.
func tryLock(*os.File) bool { return true }
