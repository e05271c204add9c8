package state

import (
	"context"
	"fmt"
	"testing"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// fill records n packages with everything that an installed, reviewed and used
// one has.
func fill(t testing.TB, d *DB, n int) {
	t.Helper()
	update(t, d, func(tx *Tx) error {
		for i := range n {
			pkg, id := testDigest(i), fmt.Sprintf("plugin-%03d", i)
			stats := []FileStat{
				{Path: "bin/" + id, Dev: 1, Ino: uint64(1000 + i), Size: 2 << 20, Mode: 0o555, MtimeNs: noon.UnixNano(), CtimeNs: noon.UnixNano()},
				{Path: "plugin.json", Dev: 1, Ino: uint64(2000 + i), Size: 300, Mode: 0o444, MtimeNs: noon.UnixNano(), CtimeNs: noon.UnixNano()},
			}
			for _, err := range []error{
				tx.PutInstall(Install{Package: pkg, Archive: pkg, Manifest: pkg, Fingerprint: pkg, ID: id, Version: "1.0.0", Name: id, InstalledAt: noon, ManifestJSON: make([]byte, 600)}),
				tx.SetDefault(Default{Dir: id, ID: id, Package: pkg, Since: noon}),
				tx.PutTrust(Trust{Package: pkg, Fingerprint: pkg, ID: id, Version: "1.0.0", At: noon, Via: "review"}),
				tx.PutEnablement(Enablement{Package: pkg, Scopes: manifest.Scopes, At: noon}),
				tx.PutHealth(Health{Package: pkg, Status: HealthHealthy, At: noon}),
				tx.PutSeen(Seen{Dir: id, Package: pkg, Fingerprint: pkg, ID: id, Name: id, Version: "1.0.0", Protocol: manifest.Protocol, Scopes: manifest.Scopes, Stats: stats}),
			} {
				if err != nil {
					return err
				}
			}
		}
		return tx.PutProjectTrust(ProjectTrust{Root: "/home/u/project", ID: "0190", At: noon})
	})
}

// runLookups is what a run reads.
func runLookups(tx *Tx, dir string) error {
	def, err := tx.Default(dir)
	if err != nil {
		return err
	}
	if _, err := tx.Install(def.Package); err != nil {
		return err
	}
	if _, err := tx.Standing(def.Package); err != nil {
		return err
	}
	_, err = tx.ProjectTrust("/home/u/project")
	return err
}

// BenchmarkRunView is one whole View with the lookups of a run; it must not
// depend on the number of packages.
func BenchmarkRunView(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("packages=%d", n), func(b *testing.B) {
			d := open(b)
			fill(b, d, n)
			b.ReportAllocs()
			for b.Loop() {
				view(b, d, func(tx *Tx) error { return runLookups(tx, "plugin-000") })
			}
		})
	}
}

// BenchmarkListView is one whole View with what a list of 100 packages reads.
func BenchmarkListView(b *testing.B) {
	d := open(b)
	fill(b, d, 100)
	b.ReportAllocs()
	for b.Loop() {
		view(b, d, func(tx *Tx) error {
			seen, err := tx.AllSeen()
			if err != nil || len(seen) != 100 {
				return fmt.Errorf("%d seen: %w", len(seen), err)
			}
			_, err = tx.Standings()
			return err
		})
	}
}

// recordRun is what a run writes when it ends.
func recordRun(tx *Tx, pkg digest.Digest, lines int) error {
	logs := make([]LogEntry, lines)
	for i := range logs {
		logs[i] = LogEntry{At: noon, Package: pkg, Call: "0190", Line: "a line on stderr of the usual length, say eighty characters or so"}
	}
	if err := tx.PutHealth(Health{Package: pkg, Status: HealthHealthy, At: noon}); err != nil {
		return err
	}
	if err := tx.AppendLogs("plugin-000", logs); err != nil {
		return err
	}
	return tx.AppendEvent(Event{At: noon, Kind: "run", ID: "plugin-000", Version: "1.0.0", Package: pkg, Detail: map[string]string{"method": "plugin.health"}})
}

// BenchmarkRunUpdate is one whole, durable Update with the record of a run.
func BenchmarkRunUpdate(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		for _, lines := range []int{0, 10} {
			b.Run(fmt.Sprintf("packages=%d/lines=%d", n, lines), func(b *testing.B) {
				d := open(b)
				fill(b, d, n)
				b.ReportAllocs()
				for b.Loop() {
					update(b, d, func(tx *Tx) error { return recordRun(tx, testDigest(0), lines) })
				}
			})
		}
	}
}

// BenchmarkOpenEmptyTransactions is the floor: lock, open, nothing, close.
func BenchmarkOpenEmptyTransactions(b *testing.B) {
	d := open(b)
	fill(b, d, 100)
	nothing := func(*Tx) error { return nil }
	b.Run("View", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			view(b, d, nothing)
		}
	})
	b.Run("Update", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := d.Update(context.Background(), nothing); err != nil {
				b.Fatal(err)
			}
		}
	})
}
