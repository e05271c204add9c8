package lockfile

import (
	"fmt"
	"testing"
)

func BenchmarkParse(b *testing.B) {
	for _, n := range []int{1, 100} {
		f := &File{}
		for i := range n {
			f.Plugins = append(f.Plugins, plugin(fmt.Sprintf("p%d", i), "1.0.0", "linux/amd64", "darwin/arm64"))
		}
		text := f.Format()
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := Parse("bench", text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
