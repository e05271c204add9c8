package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/runtime"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// pairs prepares every selected pair.
func (w *world) pairs(runs int, want func(string) bool) ([]pair, error) {
	var list []pair
	for _, p := range []struct {
		name string
		make func(runs int) (pair, error)
	}{
		{"run", w.run}, {"run-100", w.runAmongMany}, {"call", w.call}, {"go-plugin", w.goPlugin}, {"go-plugin-unchecked", w.goPluginUnchecked},
		{"list", w.list}, {"install", w.install}, {"verify", w.verify}, {"verify-least", w.verifyLeast},
		{"worker", w.bareWorker}, {"install-signed", w.installSigned}, {"install-signed-large", w.installSignedLarge}, {"verify-signed", w.verifySigned},
		{"run-listed", w.runListed},
		{"unary", w.unary}, {"unary-8", w.unary8}, {"stream", w.stream}, {"python", w.python},
		{"decode-request", w.decodeRequest}, {"decode-item", w.decodeItem},
	} {
		if !want(p.name) {
			continue
		}
		made, err := p.make(runs)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		made.name = p.name
		list = append(list, made)
	}
	return list, nil
}

func (w *world) run(runs int) (pair, error) {
	data, err := w.home("run", 1, 0)
	return pair{runs: runs * 4, limit: 1.8, ourUse: "`run bench-health health`, whole process", vs: "bare Go parent, whole process",
		ours:  start(w.command(data, "run", "bench-health", "health")),
		other: start(exec.Command(w.bare, w.plugin))}, err
}

func (w *world) runAmongMany(runs int) (pair, error) {
	many, err := w.home("many", 100, 0)
	if err != nil {
		return pair{}, err
	}
	one, err := w.home("one", 1, 0)
	return pair{runs: runs * 4, limit: 1.1, ourUse: "`run` among 100 packages", vs: "`run` with one package",
		ours:  start(w.command(many, "run", "bench-health", "health")),
		other: start(w.command(one, "run", "bench-health", "health"))}, err
}

// inProcess returns a supervised call with everything that Host.Run does.
func (w *world) inProcess(name string) (func() error, error) {
	data, err := w.home(name, 1, 0)
	if err != nil {
		return nil, err
	}
	home, err := pkgmgr.Open(data, pkgmgr.Options{})
	if err != nil {
		return nil, err
	}
	host := &runtime.Host{Home: home, Version: "bench", Lookup: os.LookupEnv}
	req := runtime.Request{CallRequest: pkgmgr.CallRequest{Ref: pkgmgr.Ref{ID: "bench-health"}, Method: pkgmgr.MethodHealth}}
	return func() error {
		_, err := host.Run(context.Background(), req)
		return err
	}, nil
}

func (w *world) call(runs int) (pair, error) {
	ours, err := w.inProcess("call")
	return pair{runs: runs * 6, limit: 1.4, ourUse: "supervised call in process, with hashing and record", vs: "bare call in process",
		ours: ours, other: func() error { return bareCall(w.plugin) }}, err
}

// goPlugin compares like with like: both sides compare the executable's SHA-256 with
// the one that was reviewed before they start it.
func (w *world) goPlugin(runs int) (pair, error) {
	ours, err := w.inProcess("go-plugin")
	if err != nil {
		return pair{}, err
	}
	program, err := os.ReadFile(w.grpc)
	sum := sha256.Sum256(program)
	return pair{runs: runs * 4, limit: 0.35, ourUse: "supervised call in process, with hashing and record",
		vs: "go-plugin with its checksum: start, one call, kill", ours: ours,
		other: func() error { return grpcCall(w.grpc, &goplugin.SecureConfig{Checksum: sum[:], Hash: sha256.New()}) }}, err
}

// goPluginUnchecked is go-plugin as it is without the check. Nothing is promised.
func (w *world) goPluginUnchecked(runs int) (pair, error) {
	ours, err := w.inProcess("go-plugin-unchecked")
	return pair{runs: runs * 4, ourUse: "supervised call in process, with hashing and record",
		vs: "go-plugin that checks nothing: start, one call, kill", ours: ours,
		other: func() error { return grpcCall(w.grpc, nil) }}, err
}

func grpcCall(path string, check *goplugin.SecureConfig) error {
	client := goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig:  goplugin.HandshakeConfig{ProtocolVersion: 1, MagicCookieKey: "BENCH_PLUGIN", MagicCookieValue: "1"},
		Plugins:          goplugin.PluginSet{},
		Cmd:              exec.Command(path),
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		SecureConfig:     check,
		Logger:           hclog.NewNullLogger(),
	})
	defer client.Kill()
	rpc, err := client.Client()
	if err != nil {
		return err
	}
	return rpc.Ping()
}

func (w *world) list(runs int) (pair, error) {
	data, err := w.home("list", 100, 0)
	if err != nil {
		return pair{}, err
	}
	if err := w.quiet(data, "list"); err != nil { // remembers what it hashed
		return pair{}, err
	}
	return pair{runs: runs * 4, limit: 2.5, ourUse: "`list` with 100 packages", vs: "empty Go program",
		ours: start(w.command(data, "list")), other: start(exec.Command(w.empty))}, nil
}

func (w *world) verify(runs int) (pair, error) {
	data, err := w.home("verify", 100, 1<<20)
	return pair{runs: max(5, runs/2), limit: 0.6, ourUse: "`verify` of 100 packages of 3 MB", vs: "single-threaded Go hasher",
		ours:  start(w.command(data, "verify")),
		other: start(exec.Command(w.hasher, filepath.Join(data, "plugins")))}, err
}

// verifyLeast says what two processors can do at all. Nothing is promised.
func (w *world) verifyLeast(runs int) (pair, error) {
	data, err := w.home("verify-least", 100, 1<<20)
	files := filepath.Join(data, "plugins")
	return pair{runs: max(5, runs/2), ourUse: "two goroutines that hash the same files and nothing else", vs: "single-threaded Go hasher",
		ours: start(exec.Command(w.hasher2, files)), other: start(exec.Command(w.hasher, files))}, err
}

// install compares with tar, sha256sum and sync of the same archive.
func (w *world) install(runs int) (pair, error) {
	archive, err := w.largeArchive("install")
	if err != nil {
		return pair{}, err
	}
	// Every run writes to a fresh place and nothing is removed before the end: file
	// systems are slow at giving out again what was just freed.
	round := 0
	place := func(name string) string { return filepath.Join(w.dir, fmt.Sprintf("%s-%03d", name, round)) }
	return pair{runs: max(5, runs/2), limit: 1.2,
		before: func() error {
			round++
			return os.MkdirAll(place("tar"), 0o755)
		},
		ourUse: "`install` of 100 MB in 5,000 files", vs: "`tar --zstd -xf`, one `sha256sum`, `sync`",
		ours: func() error { return w.command(place("data"), "install", archive).Run() },
		other: func() error {
			return shell(context.Background(), place("tar"),
				"tar --zstd -xf ../install.tar.zst && find . -type f -print0 | xargs -0 sha256sum >../sums && sync")()
		}}, nil
}

// largeArchive packs 100 MB in 5,000 files as <name>.tar.zst.
func (w *world) largeArchive(name string) (string, error) {
	pkg, err := w.healthPackage(filepath.Join(w.dir, "packages-"+name), "bench-health", 0)
	if err != nil {
		return "", err
	}
	const files, size = 5000, 20 << 10
	for i := range files {
		dir := filepath.Join(pkg, "data", fmt.Sprintf("%02d", i%50))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", err
		}
		if err := writeText(filepath.Join(dir, fmt.Sprintf("%04d.txt", i)), i, size); err != nil {
			return "", err
		}
	}
	archive := filepath.Join(w.dir, name+".tar.zst")
	return archive, w.quiet(filepath.Join(w.dir, "data-pack"), "pack", pkg, "-o", archive)
}

func (w *world) packageDigest(data, id string) (string, error) {
	home, err := pkgmgr.Open(data, pkgmgr.Options{})
	if err != nil {
		return "", err
	}
	r, err := home.Review(context.Background(), pkgmgr.Ref{ID: id}, nil)
	if err != nil {
		return "", err
	}
	return string(r.Package), nil
}

// writeText writes a file that compresses about as well as program text does.
func writeText(path string, seed, size int) error {
	b := make([]byte, 0, size+64)
	d := digest.Of([]byte(path))
	for i := 0; len(b) < size; i++ {
		if i%8 == 0 {
			d = digest.Of([]byte(d))
		}
		b = fmt.Appendf(b, "%s %d %d lines of ordinary words that repeat\n", d[7+i%8*8:7+i%8*8+8], seed, i)
	}
	return os.WriteFile(path, b[:size], 0o644)
}
