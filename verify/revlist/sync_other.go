//go:build !unix

package revlist

// syncDir does nothing: these systems make renames durable by themselves.
func syncDir(string) error { return nil }
