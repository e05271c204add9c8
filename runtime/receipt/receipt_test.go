package receipt

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

func sample() *wire.Receipt {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	at := time.Date(2026, 7, 11, 16, 20, 0, 0, time.UTC)
	return &wire.Receipt{ReceiptID: wire.NewUUID(), PluginID: "com.example.test", PublisherID: "org.example", PackageVersion: "1.0.0",
		ManifestDigest: digest, CapabilityID: "test.ops", OperationName: "echo", OperationVersion: "1.0", OperationID: wire.NewUUID(), Attempt: 1,
		ExecutionState: wire.ExecutionCompleted, EffectState: wire.EffectCommitted, StartedAt: at, IssuedAt: at, RequestDigest: digest, ExpiresAt: at.Add(time.Hour)}
}

// A receipt that was signed here is verified elsewhere with nothing but the public file;
// any change of it, or another key, is told.
func TestSignAndVerify(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	key, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := sample()
	document, err := key.Sign(r.AppendJSON(nil))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, PublicFile))
	if err != nil {
		t.Fatal(err)
	}
	public, err := ReadPublic(raw)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Verify(document, public)
	if err != nil || got.ReceiptID != r.ReceiptID {
		t.Fatal(got, err)
	}
	spaced := bytes.ReplaceAll(document, []byte(`,"`), []byte(",\n  \""))
	if _, err := Verify(spaced, public); err != nil { // the canonical form counts
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"effect":    {`"committed"`, `"none"`},
		"attempt":   {`"attempt":1`, `"attempt":2`},
		"signature": {`"signature":"`, `"signature":"A`},
	} {
		changed := bytes.Replace(document, []byte(change[0]), []byte(change[1]), 1)
		if _, err := Verify(changed, public); !errors.Is(err, ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
	other, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := ReadPublic(other.Public())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(document, foreign); !errors.Is(err, ErrOtherKey) {
		t.Error(err)
	}
	renamed := bytes.Replace(document, []byte(key.ID), []byte(other.ID), 1)
	if _, err := Verify(renamed, foreign); !errors.Is(err, ErrSignature) {
		t.Error(err)
	}
	for _, bad := range []string{``, `{}`, `{"receipt":{},"keyId":"","signature":""}`, `{"receipt":{},"keyId":"","signature":"","more":1}`} {
		if _, err := Verify([]byte(bad), public); err == nil {
			t.Errorf("%s is verified", bad)
		}
	}
}

// Many processes that need the first key at once come to one key.
func TestOneKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	ids := make([]string, 16)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			key, err := Open(dir)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = key.ID
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatal(ids)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Fatal(entries, err)
	}
	if info, err := os.Stat(filepath.Join(dir, PrivateFile)); err != nil || info.Mode().Perm()&exposed != 0 {
		t.Fatal(info, err)
	}
}

// A key that others can read, or that is none, is refused and not replaced.
func TestKeyFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, PrivateFile)
	if err := os.WriteFile(path, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil {
		t.Fatal("no key was taken for one")
	}
	if exposed != 0 {
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir); err == nil {
			t.Fatal("a key for everybody was taken")
		}
	}
}
