package archive

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// TestTools unpacks what the programs people use have packed.
func TestTools(t *testing.T) {
	dir := t.TempDir()
	src := filepath.Join(dir, "pkg-1.0")
	writeSample(t, src)
	for _, c := range []struct {
		out, command string
		needs        []string
	}{
		{"gnu.tar", "tar -cf $OUT -C pkg-1.0 .", nil},
		{"wrapped.tar", "tar -cf $OUT pkg-1.0", nil},
		{"oldgnu.tar", "tar --format=oldgnu -cf $OUT pkg-1.0", nil},
		{"ustar.tar", "tar --format=ustar -cf $OUT pkg-1.0", nil},
		{"posix.tar", "tar --format=posix -cf $OUT pkg-1.0", nil},
		{"posix.tar.gz", "tar --format=posix -czf $OUT pkg-1.0", []string{"gzip"}},
		{"gnu.tar.zst", "tar --zstd -cf $OUT pkg-1.0", []string{"zstd"}},
		{"ultra.tar.zst", "tar -cf - pkg-1.0 | zstd -q -19 --long=26 -T2 >$OUT", []string{"zstd"}},
		{"git.tar", "cd pkg-1.0 && git init -q && git add . && git -c user.name=a -c user.email=a commit -qm x && git archive HEAD >$OUT", []string{"git"}},
		{"git.tar.gz", "cd pkg-1.0 && git archive --prefix=some/ --format=tar.gz HEAD >$OUT", []string{"git", "gzip"}},
		{"git.zip", "cd pkg-1.0 && git archive --format=zip HEAD >$OUT", []string{"git"}},
		{"info.zip", "zip -qr $OUT pkg-1.0 -x '*.git*'", []string{"zip"}},
		{"stream.zip", "zip -qr - pkg-1.0 -x '*.git*' | cat >$OUT", []string{"zip"}},
		{"stored.zip", "cd pkg-1.0 && zip -0qr $OUT . -x '*.git*'", []string{"zip"}},
		{"python.tar.gz", "rm -rf pkg-1.0/.git; python3 -c 'import os, tarfile; t = tarfile.open(os.environ[\"OUT\"], \"w:gz\"); t.add(\"pkg-1.0\"); t.close()'", []string{"python3"}},
		{"python.zip", "python3 -m zipfile -c $OUT pkg-1.0/", []string{"python3"}},
		{"bsd.tar", "bsdtar -cf $OUT pkg-1.0", []string{"bsdtar"}},
		{"bsd.zip", "bsdtar --format zip -cf $OUT pkg-1.0", []string{"bsdtar"}},
	} {
		t.Run(c.out, func(t *testing.T) {
			for _, p := range append(c.needs, "sh", "tar") {
				if _, err := exec.LookPath(p); err != nil {
					t.Skipf("%s is not installed", p)
				}
			}
			out := filepath.Join(dir, c.out)
			cmd := exec.Command("sh", "-ec", "umask 022; "+c.command)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "OUT="+out, "LC_ALL=C.UTF-8")
			if b, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, b)
			}
			data, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			tree, err := newSandbox(t).extract(data, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if tree.NoModes {
				tree.MarkExecutable("bin/tool") // what the manifest would name
			}
			files := slices.DeleteFunc(tree.Files, func(f digest.File) bool { return strings.HasPrefix(f.Path, ".git/") })
			if !slices.Equal(files, sampleFiles()) {
				t.Errorf("got %v, want %v", files, sampleFiles())
			}
		})
	}
}
