package archive

import (
	"os"
	"strconv"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// strip moves what is below the directory top to the root and removes top. It
// costs one rename for each name directly below top, and two more system calls:
// the price of not knowing, while a tar streams by, whether top will stay the
// only one. Files are those of the finished tree, without top.
func strip(dst *os.Root, top string, files []digest.File) error {
	children := map[string]bool{}
	folded := map[string]bool{}
	for _, f := range files {
		name := f.Path[:firstSlash(f.Path)]
		if !children[name] {
			children[name] = true
			folded[foldPath(name)] = true
		}
	}
	if folded[foldPath(top)] {
		aside := "aside"
		for n := 0; folded[aside] || aside == foldPath(top); n++ {
			aside = "aside" + strconv.Itoa(n)
		}
		if err := dst.Rename(top, aside); err != nil {
			return err
		}
		top = aside
	}
	for name := range children {
		if err := dst.Rename(top+"/"+name, name); err != nil {
			return err
		}
	}
	return dst.Remove(top)
}
