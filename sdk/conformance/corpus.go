package conformance

import (
	"cmp"
	"embed"
	"io/fs"
	"slices"
	"strings"
)

// corpus holds the cases and the packages they run with.
//
//go:embed corpus
var corpus embed.FS

// Cases returns the corpus, sorted by group and name.
func Cases() ([]*Case, error) {
	var list []*Case
	err := fs.WalkDir(corpus, "corpus/cases", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := corpus.ReadFile(path)
		if err != nil {
			return err
		}
		c, err := Parse(strings.TrimPrefix(path, "corpus/cases/"), string(text))
		if err != nil {
			return err
		}
		list = append(list, c)
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b *Case) int { return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Name, b.Name)) })
	return list, nil
}

// Select returns the cases whose group or name is only; "" means all.
func Select(list []*Case, only string) []*Case {
	if only == "" {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(c *Case) bool { return c.Group != only && c.Name != only })
}
