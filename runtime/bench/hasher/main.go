// Program hasher is the least that a Go program can do to hash files: one after
// the other, SHA-256, 256 KiB at a time.
package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

func main() {
	buf := make([]byte, 256<<10)
	err := filepath.WalkDir(os.Args[1], func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		h := sha256.New()
		// The wrapper hides ReadFrom and WriteTo, so that buf is what is used.
		if _, err := io.CopyBuffer(struct{ io.Writer }{h}, struct{ io.Reader }{f}, buf); err != nil {
			return err
		}
		fmt.Printf("%x  %s\n", h.Sum(nil), path)
		return nil
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
