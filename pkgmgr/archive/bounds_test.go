package archive

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestBoundsOfTheFinalPath holds that a wrapping directory costs a package
// nothing of its bounds, and that nothing else gets them for nothing.
func TestBoundsOfTheFinalPath(t *testing.T) {
	long := strings.Repeat("p", small.PathBytes)
	deep := "a/b/c/d"
	longDirs := newTar().file("w/plugin.json", "").dir("x/" + long)
	seven := newTar().file("w/plugin.json", "")
	for i := range 7 {
		seven.file(fmt.Sprintf("w/%d", i), "")
	}
	full := seven.done()
	for _, c := range []struct {
		name  string
		data  []byte
		rule  Rule // "" if accepted
		entry string
	}{
		{"at the bounds", newTar().file("plugin.json", "").file(long, "").file(deep, "").done(), "", ""},
		{"at the bounds, wrapped", newTar().file("w/plugin.json", "").file("w/"+long, "").file("w/"+deep, "").done(), "", ""},
		{"at the bounds, wrapped, manifest last", newTar().file("w/"+long, "").file("w/"+deep, "").file("w/plugin.json", "").done(), "", ""},
		{"not wrapped after all", newTar().file("w/"+long, "").file("w/plugin.json", "").file("a", "").done(), RulePathLength, "w/" + long},
		{"wrapped without a manifest", newTar().file("w/"+deep, "").done(), RuleDepth, "w/" + deep},
		{"a long directory elsewhere", longDirs.done(), RulePathLength, "x/" + long},
		{"over the bounds, wrapped", newTar().file("w/plugin.json", "").file("w/x"+long, "").done(), RulePathLength, "w/x" + long},
		{"over the depth, wrapped", newTar().file("w/plugin.json", "").file("w/x/"+deep, "").done(), RuleDepth, "w/x/" + deep},
		{"as many as may be", many(small.Entries), "", ""},
		{"as many as may be, wrapped", full, "", ""},
		{"one more, wrapped", newTarFrom(full).file("w/8", "").done(), RuleEntries, "w/8"},
		{"one more than may be, not wrapped after all", newTar().file("w/1", "").file("w/2", "").file("w/3", "").file("w/4", "").file("w/5", "").file("w/6", "").file("w/7", "").file("8", "").done(), RuleEntries, "8"},
		{"one more, wrapped without a manifest", newTar().file("w/1", "").file("w/2", "").file("w/3", "").file("w/4", "").file("w/5", "").file("w/6", "").file("w/7", "").file("w/8", "").done(), RuleEntries, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := newSandbox(t).extract(c.data, Options{Limits: small})
			if c.rule != "" {
				wantRefusal(t, err, c.rule, c.entry)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// newTarFrom continues a finished tar.
func newTarFrom(done []byte) *tarball {
	t := newTar()
	t.Write(done[:len(done)-2*tarBlock])
	return t
}

// TestBounds runs each size exactly at its bound; one beyond is among the
// refusals.
func TestBounds(t *testing.T) {
	noise := func(n int) string {
		b := make([]byte, n)
		x := uint32(1)
		for i := range b {
			x = x*1664525 + 1013904223
			b[i] = byte(x >> 24)
		}
		return string(b)
	}
	full := good().file("b", noise(int(small.Unpacked)-len(manifest))).done()
	for name, data := range map[string][]byte{
		"unpacked":        full,
		"unpacked, zip":   zipOf(zipped{name: "plugin.json", contents: manifest}, zipped{name: "b", contents: noise(int(small.Unpacked) - len(manifest)), method: zipDeflate}),
		"pax header":      good().pax("comment", noise(0)+strings.Repeat("c", int(small.Header)-len("4096 comment=\n"))).file("b", noise(1000)).done(),
		"padding":         append(good().done(), make([]byte, small.Overhead)...),
		"ratio at a size": zstded(good().file("b", strings.Repeat("\x00", int(small.RatioFree)-5*tarBlock)).done()),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := newSandbox(t).extract(data, Options{Limits: small}); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("archive size", func(t *testing.T) {
		l := small
		l.Archive = int64(len(full))
		if _, err := newSandbox(t).extract(full, Options{Limits: l}); err != nil {
			t.Error(err)
		}
		l.Archive--
		_, err := newSandbox(t).extract(full, Options{Limits: l})
		wantRefusal(t, err, RuleArchiveSize, "")
	})
	t.Run("zstd window", func(t *testing.T) {
		// A frame of one raw block that claims a window of 2^exponent bytes.
		frame := func(exponent byte) []byte {
			tar := good().done()
			n := uint32(len(tar))<<3 | 1
			return append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, (exponent - 10) << 3, byte(n), byte(n >> 8), byte(n >> 16)}, tar...)
		}
		if _, err := newSandbox(t).extract(frame(26), Options{}); err != nil {
			t.Errorf("64 MiB: %v", err)
		}
		_, err := newSandbox(t).extract(frame(27), Options{})
		wantRefusal(t, err, RuleWindow, "")
	})
}

// TestZeroLimits holds that a forgotten bound is the strictest.
func TestZeroLimits(t *testing.T) {
	l := Limits{Archive: 1 << 20}
	_, err := newSandbox(t).extract(good().done(), Options{Limits: l})
	wantRefusal(t, err, RuleRatio, "")
	l.RatioFree = 1 << 20
	_, err = newSandbox(t).extract(good().done(), Options{Limits: l})
	wantRefusal(t, err, RulePathLength, "plugin.json")
}

// TestMemory unpacks archives that claim or hold much and checks that memory
// stays what the documentation says.
func TestMemory(t *testing.T) {
	bomb := good().file("b", strings.Repeat("\x00", 32<<20)).done()
	claims := good()
	for range 12 {
		claims.pax("comment", strings.Repeat("c", 1<<20-20)).file("f", "")
		claims.Truncate(claims.Len() - tarBlock)
	}
	for name, data := range map[string][]byte{
		"gzip bomb":       gzipped(bomb),
		"zstd bomb":       zstded(bomb),
		"zip bomb":        zipOf(zipped{name: "b", contents: strings.Repeat("\x00", 32<<20), method: zipDeflate}),
		"many pax":        claims.done(),
		"large tar":       bomb,
		"claimed entries": zipFile{entries: []zipped{{name: "b"}}, end: func(b []byte) { copy(b[8:], "\x20\x4e\x20\x4e") }}.bytes(),
	} {
		t.Run(name, func(t *testing.T) {
			s := newSandbox(t)
			path := filepath.Join(t.TempDir(), "archive")
			s.must(os.WriteFile(path, data, 0o600))
			src, err := os.Open(path)
			s.must(err)
			defer src.Close()
			dst := openRoot(t, s.dst())
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			Extract(context.Background(), src, name, dst, Options{})
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 24<<20 {
				t.Errorf("%d MiB allocated", n>>20)
			}
		})
	}
}
