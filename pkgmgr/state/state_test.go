package state

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 123456789, time.UTC)

func testDigest(n int) digest.Digest { return digest.Of([]byte(strconv.Itoa(n))) }

// open returns the database of an empty directory.
func open(t testing.TB) *DB {
	t.Helper()
	return At(t.TempDir())
}

func update(t testing.TB, d *DB, fn func(*Tx) error) {
	t.Helper()
	if err := d.Update(context.Background(), fn); err != nil {
		t.Fatalf("update: %v", err)
	}
}

func view(t testing.TB, d *DB, fn func(*Tx) error) {
	t.Helper()
	if err := d.View(context.Background(), fn); err != nil {
		t.Fatalf("view: %v", err)
	}
}

func wantEqual(t testing.TB, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %+v\nwant %+v", got, want)
	}
}

func wantIs(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

func TestViewOfEmptyDirectoryCreatesNothing(t *testing.T) {
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "absent")} {
		view(t, At(dir), func(tx *Tx) error {
			_, err := tx.Install(testDigest(1))
			wantIs(t, err, ErrNotFound)
			list, err := tx.Installs()
			wantEqual(t, list, []Install{})
			return err
		})
		entries, err := os.ReadDir(dir)
		if err == nil && len(entries) > 0 {
			t.Fatalf("View left %v", entries)
		}
	}
}

func TestRecordsRoundTrip(t *testing.T) {
	d := open(t)
	pkg := testDigest(1)
	install := Install{
		Package: pkg, Archive: testDigest(2), Manifest: testDigest(3), Fingerprint: testDigest(4),
		ID: "repo-facts", Version: "1.0.0", Name: "Repo facts", Source: "dist/é.tar.zst", Platform: "linux/amd64",
		Executable: "bin/repo-facts", InstalledAt: noon, Files: 3, Bytes: 1 << 40, ManifestJSON: []byte(`{"id":"repo-facts"}`),
	}
	def := Default{Dir: "repo-facts", ID: "repo-facts", Package: pkg, Since: noon}
	trust := Trust{Package: pkg, Fingerprint: testDigest(4), ID: "repo-facts", Version: "1.0.0", At: noon, Via: "review"}
	enable := Enablement{Package: pkg, Scopes: []manifest.Scope{manifest.ScopeFilesRead, manifest.ScopeMetadataRead}, At: noon}
	block := Block{Package: pkg, Kind: BlockChanged, At: noon, Detail: "bin/repo-facts"}
	health := Health{Package: pkg, Status: HealthUnhealthy, Code: "plugin.banner", Message: "bad \xff utf-8", At: noon}
	project := ProjectTrust{Root: "/home/u/a project", ID: "0190", At: noon}
	approval := ProjectApproval{Root: project.Root, Package: pkg, ID: "repo-facts", Scopes: enable.Scopes, LockDigest: testDigest(5), At: noon}
	seen := Seen{
		Dir: "repo-facts", Package: pkg, Fingerprint: testDigest(4), ID: "repo-facts", Name: "Repo facts", Version: "1.0.0",
		Protocol: manifest.Protocol, Scopes: enable.Scopes,
		Stats: []FileStat{
			{Path: "bin/repo-facts", Dev: 1 << 63, Ino: 42, Size: 2 << 20, Mode: 0o555, MtimeNs: noon.UnixNano(), CtimeNs: noon.UnixNano() + 1},
			{Path: "plugin.json", Dev: 1 << 63, Ino: 41, Size: 300, Mode: 0o444, MtimeNs: -5, CtimeNs: noon.UnixNano()},
		},
	}
	update(t, d, func(tx *Tx) error {
		return errors.Join(tx.PutInstall(install), tx.SetDefault(def), tx.PutTrust(trust), tx.PutEnablement(enable), tx.PutBlock(block),
			tx.PutHealth(health), tx.PutProjectTrust(project), tx.PutProjectApproval(approval), tx.PutSeen(seen))
	})
	view(t, d, func(tx *Tx) error {
		gotInstall, err := tx.Install(pkg)
		wantIs(t, err, nil)
		wantEqual(t, gotInstall, install)
		gotDefault, err := tx.Default("repo-facts")
		wantIs(t, err, nil)
		wantEqual(t, gotDefault, def)
		standing := Standing{Package: pkg, Trust: &trust, Enablement: &enable, Blocks: []Block{block}, Health: &health}
		gotStanding, err := tx.Standing(pkg)
		wantIs(t, err, nil)
		wantEqual(t, gotStanding, standing)
		all, err := tx.Standings()
		wantIs(t, err, nil)
		wantEqual(t, all, map[digest.Digest]Standing{pkg: standing})
		gotProject, err := tx.ProjectTrust(project.Root)
		wantIs(t, err, nil)
		wantEqual(t, gotProject, project)
		gotApproval, err := tx.ProjectApproval(project.Root, pkg)
		wantIs(t, err, nil)
		wantEqual(t, gotApproval, approval)
		gotSeen, err := tx.AllSeen()
		wantIs(t, err, nil)
		wantEqual(t, gotSeen, []Seen{seen})
		return nil
	})
}
