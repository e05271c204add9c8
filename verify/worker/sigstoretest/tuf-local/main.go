// Command tuf-local writes the files of a TUF repository for tests into the directory DIR,
// in place of what is there:
//
//	tuf-local DIR TRUSTED_ROOT [NAME=VALUE…]
//
// names the file TRUSTED_ROOT as its trusted root. seed (whose keys sign), root, timestamp,
// snapshot and targets (versions, 1), and expires (a duration from now, 1h) may be set.
// DIR/root.json is a copy of the first root, which its operator would tell.
package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/switchyard-plugins/switchyard/verify/worker/sigstoretest"
)

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: tuf-local DIR TRUSTED_ROOT [NAME=VALUE…]")
	}
	if err := write(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		log.Fatal(err)
	}
}

func write(dir, document string, settings []string) error {
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	now := time.Now()
	r := sigstoretest.TUFRepository{Seed: "a", Root: 1, Timestamp: 1, Snapshot: 1, Targets: 1, Document: text,
		Expires: now.Add(time.Hour), RootExpiry: now.Add(24 * time.Hour)}
	versions := map[string]*int64{"root": &r.Root, "timestamp": &r.Timestamp, "snapshot": &r.Snapshot, "targets": &r.Targets}
	for _, setting := range settings {
		name, value, _ := strings.Cut(setting, "=")
		switch at := versions[name]; {
		case at != nil:
			*at, err = strconv.ParseInt(value, 10, 64)
		case name == "seed":
			r.Seed = value
		case name == "expires":
			var d time.Duration
			d, err = time.ParseDuration(value)
			r.Expires = now.Add(d)
		default:
			err = fmt.Errorf("no setting %q", name)
		}
		if err != nil {
			return err
		}
	}
	files, err := r.Files()
	if err != nil {
		return err
	}
	files["root.json"] = files["1.root.json"]
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "targets"), 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
