package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
)

// world is what the pairs run: built programs, packages and data directories.
type world struct {
	dir        string
	switchyard string
	worker     string // switchyard-verify
	empty      string
	bare       string
	hasher     string
	hasher2    string
	plugin     string // the plugin's executable
	grpc       string
	session    string // a session plugin's executable
	grpcEcho   string // go-plugin's with the same operations
	grpcHost   string
}

func build(dir string) (*world, error) {
	w := &world{dir: dir}
	for _, b := range []struct {
		out  *string
		name string
		from string
		tags string
	}{
		{&w.switchyard, "switchyard", "../..", "urfave_cli_no_docs"},
		{&w.worker, "switchyard-verify", "../../verify/worker/switchyard-verify", "urfave_cli_no_docs"},
		{&w.empty, "empty", "./empty", ""},
		{&w.bare, "bareparent", "./bareparent", ""},
		{&w.hasher, "hasher", "./hasher", ""},
		{&w.hasher2, "hasher2", "./hasher2", ""},
		{&w.plugin, "health", "./health", ""},
		{&w.grpc, "grpcplugin", "./grpcplugin", ""},
		{&w.session, "session", "./session", ""},
		{&w.grpcEcho, "grpcecho", "./grpcecho", ""},
		{&w.grpcHost, "grpchost", "./grpchost", ""},
	} {
		*b.out = filepath.Join(dir, "bin", b.name)
		args := []string{"build", "-trimpath", "-ldflags=-s -w", "-tags=" + b.tags, "-o", *b.out, "."}
		cmd := exec.Command("go", args...)
		cmd.Dir = b.from
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("go build %s: %w\n%s", b.from, err, out)
		}
	}
	return w, nil
}

// home makes a data directory in which n packages are installed, and the first
// one, "bench-health", is trusted and enabled.
func (w *world) home(name string, n int, pad int) (string, error) {
	data := filepath.Join(w.dir, "data-"+name)
	for i := range n {
		id := "bench-health"
		if i > 0 {
			id = fmt.Sprintf("bench-%03d", i)
		}
		pkg, err := w.healthPackage(filepath.Join(w.dir, "packages-"+name), id, pad)
		if err != nil {
			return "", err
		}
		if err := w.quiet(data, "install", pkg); err != nil {
			return "", err
		}
	}
	digest, err := w.packageDigest(data, "bench-health")
	if err != nil {
		return "", err
	}
	if err := w.quiet(data, "trust", "bench-health", "--fingerprint", digest); err != nil {
		return "", err
	}
	return data, w.quiet(data, "enable", "bench-health", "--scope", "project.metadata.read")
}

// healthPackage writes a package directory with the benchmark plugin under an id,
// and, with pad above zero, a file of that many random bytes.
func (w *world) healthPackage(parent, id string, pad int) (string, error) {
	dir := filepath.Join(parent, id)
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o755); err != nil {
		return "", err
	}
	manifest, err := os.ReadFile("health/plugin.json")
	if err != nil {
		return "", err
	}
	manifest = bytes.Replace(manifest, []byte(`"bench-health"`), []byte(`"`+id+`"`), 1)
	if err := os.WriteFile(filepath.Join(dir, "plugin.json"), manifest, 0o644); err != nil {
		return "", err
	}
	program, err := os.ReadFile(w.plugin)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "bin", "health"), program, 0o755); err != nil {
		return "", err
	}
	if pad > 0 {
		return dir, writeRandom(filepath.Join(dir, "data.bin"), pad)
	}
	return dir, nil
}

func writeRandom(path string, n int) error {
	b := make([]byte, n)
	rand.Read(b)
	return os.WriteFile(path, b, 0o644)
}

// quiet runs switchyard and returns what it said only if it fails.
func (w *world) quiet(data string, args ...string) error {
	out, err := w.command(data, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("switchyard %v: %w\n%s", args, err, out)
	}
	return nil
}

func (w *world) command(data string, args ...string) *exec.Cmd {
	cmd := exec.Command(w.switchyard, append([]string{"--data-dir", data}, args...)...)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), pkgmgr.EnvConfigDir+"="+w.config())
	return cmd
}

// config is the configuration directory of every command: its keys are those that pairs
// sign with.
func (w *world) config() string { return filepath.Join(w.dir, "config") }

// start runs a program to its end with its output discarded.
func start(cmd *exec.Cmd) func() error {
	return func() error {
		c := *cmd
		c.Stderr = nil
		return c.Run()
	}
}

func removeAll(dir string) {
	filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			os.Chmod(p, 0o700)
		}
		return nil
	})
	os.RemoveAll(dir)
}

// shell runs one command line of the comparison.
func shell(ctx context.Context, dir, line string) func() error {
	return func() error {
		cmd := exec.CommandContext(ctx, "sh", "-c", line)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", line, err, out)
		}
		return nil
	}
}
