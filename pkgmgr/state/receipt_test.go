package state

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	bolt "go.etcd.io/bbolt"
)

func testReceipt(id, operation, key string) Receipt {
	return Receipt{ID: id, PluginID: "com.example.test", Version: "1.0.0", Action: "test.ops/echo", OperationID: operation, Key: key,
		Execution: "completed", Effect: "committed", IssuedAt: noon, ExpiresAt: noon.Add(time.Hour), RecordedAt: noon,
		Document: jsontext.Value(`{"receipt":{}}`)}
}

func TestReceipts(t *testing.T) {
	d := open(t)
	update(t, d, func(tx *Tx) error {
		return errors.Join(tx.PutReceipt(testReceipt("r1", "o1", "k")), tx.PutReceipt(testReceipt("r2", "o2", "")), tx.PutReceipt(testReceipt("r3", "o3", "k")))
	})
	view(t, d, func(tx *Tx) error {
		r, err := tx.ReceiptByKey("com.example.test", "test.ops/echo", "k")
		wantEqual(t, r.ID, "r3")
		list, err2 := tx.Receipts(2, nil)
		wantEqual(t, fmt.Sprintf("%d %s %s", len(list), list[0].ID, list[1].ID), "2 r3 r2")
		_, err3 := tx.Receipt("r1") // an earlier one with the key stays
		_, none := tx.Receipt("r9")
		if !errors.Is(none, ErrNotFound) {
			t.Errorf("got %v", none)
		}
		return errors.Join(err, err2, err3)
	})
}

// What this host made for an operation gives way to the plugin's own receipt of it.
func TestOwnReceiptIsReplaced(t *testing.T) {
	d := open(t)
	own := testReceipt("r1", "o1", "k")
	own.Own = true
	update(t, d, func(tx *Tx) error { return tx.PutReceipt(own) })
	update(t, d, func(tx *Tx) error { return tx.PutReceipt(testReceipt("r2", "o1", "k")) })
	view(t, d, func(tx *Tx) error {
		list, err := tx.Receipts(0, nil)
		wantEqual(t, fmt.Sprintf("%d %s", len(list), list[0].ID), "1 r2")
		return err
	})
}

// Beyond the bound what has expired goes first, else the oldest.
func TestReceiptsAreBounded(t *testing.T) {
	d := open(t)
	update(t, d, func(tx *Tx) error {
		for _, id := range []string{"r1", "r2", "r3"} {
			r := testReceipt(id, id, id)
			if id == "r2" {
				r.ExpiresAt = noon.Add(-time.Hour)
			}
			if err := tx.PutReceipt(r); err != nil {
				return err
			}
		}
		return tx.bolt.Bucket([]byte(bucketNames[bucketReceipts])).SetSequence(KeepReceipts)
	})
	for _, want := range []string{"r4 r3 r1", "r5 r4 r3"} {
		update(t, d, func(tx *Tx) error { return tx.PutReceipt(testReceipt(want[:2], want[:2], want[:2])) })
		view(t, d, func(tx *Tx) error {
			list, err := tx.Receipts(0, nil)
			got := ""
			for i, r := range list {
				if i > 0 {
					got += " "
				}
				got += r.ID
			}
			wantEqual(t, got, want)
			_, gone := tx.ReceiptByKey("com.example.test", "test.ops/echo", "r2")
			if !errors.Is(gone, ErrNotFound) {
				t.Errorf("got %v", gone)
			}
			return err
		})
	}
}

// A database of format 1 has no receipts, and gets them with everything else as it is.
func TestMigrationToReceipts(t *testing.T) {
	d := open(t)
	first := &DB{dir: d.dir}
	fill(t, d, 1)
	b, err := bolt.Open(d.Path(), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = b.Update(func(tx *bolt.Tx) error {
		return errors.Join(tx.DeleteBucket([]byte("receipts")), tx.DeleteBucket([]byte("receiptKeys")), tx.Bucket([]byte("meta")).Put(formatKey, []byte("1")))
	})
	if err := errors.Join(err, b.Close()); err != nil {
		t.Fatal(err)
	}
	view(t, first, func(tx *Tx) error { return runLookups(tx, "plugin-000") })
	update(t, d, func(tx *Tx) error { return tx.PutReceipt(testReceipt("r1", "o1", "k")) })
	view(t, d, func(tx *Tx) error { return runLookups(tx, "plugin-000") })
}
