//go:build unix

package pkgmgr

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr/project"
)

// elf is a program for linux on an architecture, as far as its head goes.
func elf(machine byte) string {
	b := make([]byte, 64)
	copy(b, "\x7fELF\x02\x01\x01\x00")
	b[18] = machine
	return string(b)
}

const (
	amd64 = 62
	arm64 = 183
)

// hostMachine is this machine's, otherMachine another one's, with its platform.
func machines() (host, other byte, otherPlatform string) {
	if strings.HasSuffix(HostPlatform(), "/arm64") {
		return arm64, amd64, "linux/amd64"
	}
	return amd64, arm64, "linux/arm64"
}

// A workspace is a site with a project.
type workspace struct {
	*site
	root string
}

func newWorkspace(t *testing.T, config string) *workspace {
	t.Helper()
	if !strings.HasPrefix(HostPlatform(), "linux/") {
		t.Skip("the sample programs are for linux")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	must(t, os.Mkdir(filepath.Join(root, ".git"), 0o755))
	if config != "" {
		write(t, filepath.Join(root, project.ConfigName), config, 0o644)
	}
	return &workspace{newSite(t), root}
}

func (w *workspace) project() *project.Project {
	w.t.Helper()
	p, err := project.Find(w.root)
	if errors.Is(err, project.ErrNone) {
		p, err = project.New(w.root)
	}
	must(w.t, err)
	return p
}

func (w *workspace) lock() *Lock {
	w.t.Helper()
	l, err := ReadLock(w.root)
	must(w.t, err)
	return l
}

func (w *workspace) relock(mode LockMode, platforms ...string) (*LockReport, error) {
	return w.Relock(w.ctx, w.project(), platforms, mode)
}

// built puts a build of the sample into dist/, and returns its path.
func (w *workspace) built(p sample, name string) string {
	w.t.Helper()
	out := filepath.Join(w.root, "dist", name)
	packInto(w.t, p.dir(w.t), out)
	return out
}

func (w *workspace) entry(id string) lockfile.Plugin {
	w.t.Helper()
	e, ok := w.lock().File.Plugin(id)
	if !ok {
		w.t.Fatalf("%s is not locked", id)
	}
	return e
}

const toml = `version = 1
platforms = ["linux/amd64", "linux/arm64"]
[plugins.x]
source = "./dist/x-{version}-{os}-{arch}.tar.zst"
version = "1.0.0"
scopes = ["project.metadata.read"]
`

func programs() (here, there sample, thereName string) {
	host, other, otherPlatform := machines()
	here = sample{id: "x", version: "1.0.0", script: elf(host)}
	there = sample{id: "x", version: "1.0.0", script: elf(other)}
	return here, there, strings.ReplaceAll(otherPlatform, "/", "-")
}

func hostName() string { return strings.ReplaceAll(HostPlatform(), "/", "-") }

func mustNot(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		t.Error("no error")
	}
}
