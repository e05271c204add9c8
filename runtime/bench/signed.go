package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify/revlist"
)

// bareWorker is a verify worker that is started and asked nothing. Nothing is promised:
// the row says what one start is.
func (w *world) bareWorker(runs int) (pair, error) {
	return pair{runs: runs * 4, ourUse: "start and end of a verify worker", vs: "empty Go program",
		ours: start(exec.Command(w.worker)), other: start(exec.Command(w.empty))}, nil
}

// installSigned holds that a signature costs an install one start of a worker at most,
// also where there is little to extract meanwhile.
func (w *world) installSigned(runs int) (pair, error) {
	pkg, err := w.healthPackage(filepath.Join(w.dir, "packages-install-signed"), "bench-health", 0)
	if err != nil {
		return pair{}, err
	}
	archive := filepath.Join(w.dir, "install-signed.tar.zst")
	if err := w.quiet(filepath.Join(w.dir, "data-pack"), "pack", pkg, "-o", archive); err != nil {
		return pair{}, err
	}
	p, err := w.signedAgainstUnsigned(archive)
	worker, unsigned := start(exec.Command(w.worker)), p.other
	p.runs, p.limit = runs*2, 1.15
	p.ourUse, p.vs = "`install` of a signed package of 2 MB", "`install` of it unsigned, then start and end of a verify worker"
	p.other = func() error {
		if err := unsigned(); err != nil {
			return err
		}
		return worker()
	}
	return p, err
}

// installSignedLarge holds that the worker's start is hidden behind a longer extraction.
func (w *world) installSignedLarge(runs int) (pair, error) {
	archive, err := w.largeArchive("install-signed-large")
	if err != nil {
		return pair{}, err
	}
	p, err := w.signedAgainstUnsigned(archive)
	p.runs, p.limit = max(5, runs/2), 1.1
	p.ourUse, p.vs = "`install` of a signed package of 100 MB in 5,000 files", "`install` of it unsigned"
	return p, err
}

// signedAgainstUnsigned installs an archive with a signature beside it, and a copy
// without one, each time into a fresh place.
func (w *world) signedAgainstUnsigned(archive string) (pair, error) {
	plain := filepath.Join(w.dir, "unsigned-"+filepath.Base(archive))
	if err := os.Link(archive, plain); err != nil {
		return pair{}, err
	}
	if err := w.sign(archive); err != nil {
		return pair{}, err
	}
	round := 0
	place := func(name string) string {
		return filepath.Join(w.dir, fmt.Sprintf("%s-%s-%03d", name, filepath.Base(archive), round))
	}
	return pair{
		before: func() error { round++; return nil },
		ours:   func() error { return w.command(place("signed"), "install", archive).Run() },
		other:  func() error { return w.command(place("unsigned"), "install", plain).Run() },
	}, nil
}

// sign signs a file with the one key of the benchmark, whose public half lies in the
// configuration directory.
func (w *world) sign(file string) error {
	key, err := w.key("publisher")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(w.config(), "keys"), 0o755); err != nil {
		return err
	}
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(w.config(), "keys", "publisher.pub"), public, 0o644); err != nil {
		return err
	}
	return w.quiet(filepath.Join(w.dir, "data-sign"), "sign", file, "--key", key+".key")
}

// key makes a key pair, once, and returns the path that its files begin with.
func (w *world) key(name string) (string, error) {
	path := filepath.Join(w.dir, "key-"+name)
	if _, err := os.Stat(path + ".key"); err == nil {
		return path, nil
	}
	return path, w.quiet(filepath.Join(w.dir, "data-sign"), "keygen", "-o", path, "--no-passphrase")
}

// verifySigned compares packages with kept signatures and packages without. One worker
// proves all of them.
func (w *world) verifySigned(runs int) (pair, error) {
	const packages = 100
	signed, plain := filepath.Join(w.dir, "data-verify-signed"), filepath.Join(w.dir, "data-verify-unsigned")
	for i := range packages {
		id := fmt.Sprintf("bench-%03d", i)
		pkg, err := w.healthPackage(filepath.Join(w.dir, "packages-verify-signed"), id, 0)
		if err != nil {
			return pair{}, err
		}
		archive := filepath.Join(w.dir, "verify-signed", id+".tar.zst")
		if err := os.MkdirAll(filepath.Dir(archive), 0o755); err != nil {
			return pair{}, err
		}
		if err := w.quiet(plain, "pack", pkg, "-o", archive); err != nil {
			return pair{}, err
		}
		if err := w.quiet(plain, "install", archive); err != nil {
			return pair{}, err
		}
		if err := w.sign(archive); err != nil {
			return pair{}, err
		}
		if err := w.quiet(signed, "install", archive); err != nil {
			return pair{}, err
		}
	}
	worker, unsigned := start(exec.Command(w.worker)), start(w.command(plain, "verify"))
	return pair{runs: max(5, runs), limit: 1.6, ourUse: "`verify` of 100 signed packages of 2 MB", vs: "`verify` of them unsigned, then start and end of a verify worker",
		ours: start(w.command(signed, "verify")),
		other: func() error {
			if err := unsigned(); err != nil {
				return err
			}
			return worker()
		}}, nil
}

// runListed compares a call under a list of a million entries with one under an empty
// list.
func (w *world) runListed(runs int) (pair, error) {
	const entries = 1_000_000
	many, err := w.following("many-entries", entries)
	if err != nil {
		return pair{}, err
	}
	none, err := w.following("no-entries", 0)
	return pair{runs: runs * 20, more: time.Millisecond, ourUse: "`run` under a revocation list of 1,000,000 entries", vs: "`run` under an empty one",
		ours:  start(w.command(many, "run", "bench-health", "health")),
		other: start(w.command(none, "run", "bench-health", "health"))}, err
}

// following makes a data directory as home does, in which a revocation list of n entries
// is followed.
func (w *world) following(name string, n int) (string, error) {
	const issuer = "bench.example.com"
	data, err := w.home(name, 1, 0)
	if err != nil {
		return "", err
	}
	root, err := w.key("root")
	if err != nil {
		return "", err
	}
	list, err := w.key("list")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(w.dir, "lists-"+name)
	if err := w.quiet(data, "revocations", "create", "--issuer", issuer, "--root-signer", root+".pub", "--list-signer", list+".pub", "-o", dir); err != nil {
		return "", err
	}
	if err := writeList(filepath.Join(dir, pkgmgr.ListFile), issuer, n); err != nil {
		return "", err
	}
	for _, by := range [][2]string{{pkgmgr.RootFile, root}, {pkgmgr.ListFile, list}} {
		if err := w.quiet(data, "revocations", "sign", filepath.Join(dir, by[0]), "--key", by[1]+".key"); err != nil {
			return "", err
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, pkgmgr.RootFile))
	if err != nil {
		return "", err
	}
	return data, w.quiet(data, "revocations", "update", dir, "--trust-root", string(digest.Of(text)))
}

// writeList writes a list that names n packages which are nowhere.
func writeList(path, issuer string, n int) error {
	list, err := revlist.New(issuer, time.Now(), 24*time.Hour)
	if err != nil {
		return err
	}
	for i := range n {
		list.Entries = append(list.Entries, revlist.Entry{Kind: revlist.Package, Digest: digest.Digest(fmt.Sprintf("sha256:%064x", i)),
			Action: revlist.Block, Reason: revlist.Malicious})
	}
	var text bytes.Buffer
	if err := revlist.Write(&text, list, func(string) (func(string) bool, error) { return nil, fmt.Errorf("no range is in it") }); err != nil {
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o644)
}
