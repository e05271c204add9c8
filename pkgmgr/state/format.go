package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	bolt "go.etcd.io/bbolt"
)

// A migration takes the database from one format to the next, inside one transaction.
type migration func(*bolt.Tx) error

// firstFormat is the oldest format there is.
const firstFormat = 1

// migrations returns the table: the function at index i takes format
// firstFormat+i to the next one, so the table's length says which format is
// current. Entries are never changed or removed once released.
func migrations() []migration { return []migration{addReceipts} }

// addReceipts takes format 1 to 2, which has receipts.
func addReceipts(tx *bolt.Tx) error {
	for _, name := range []string{"receipts", "receiptKeys"} {
		if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
			return err
		}
	}
	return nil
}

// known is the format that this program reads and writes.
func (d *DB) known() int { return firstFormat + len(d.migrations) }

// A bucketID names one bucket. Every bucket exists in every database.
type bucketID uint8

const (
	bucketMeta bucketID = iota
	bucketInstalls
	bucketDefaults
	bucketStanding
	bucketProjects
	bucketApprovals
	bucketSeen
	bucketLogs
	bucketOperations
	bucketRunning
	bucketKeys
	bucketResults
	bucketEvents
	bucketReceipts
	bucketReceiptKeys
	buckets
)

var bucketNames = [buckets]string{
	bucketMeta:        "meta",        // "format" → decimal
	bucketInstalls:    "installs",    // package digest → Install
	bucketDefaults:    "defaults",    // directory name → Default
	bucketStanding:    "standing",    // package digest '/' kind → Trust, Enablement, Block, Health
	bucketProjects:    "projects",    // project root → ProjectTrust
	bucketApprovals:   "approvals",   // project root NUL package digest → ProjectApproval
	bucketSeen:        "seen",        // directory name → Seen
	bucketLogs:        "logs",        // plugin id → bucket: sequence → LogEntry
	bucketOperations:  "operations",  // operation id → Operation; the bucket's sequence is their number
	bucketRunning:     "running",     // operation id → one byte
	bucketKeys:        "keys",        // plugin id NUL action NUL idempotency key → operation id
	bucketResults:     "results",     // operation id → JSON; the bucket's sequence is their number
	bucketEvents:      "events",      // sequence → Event
	bucketReceipts:    "receipts",    // receipt id → Receipt; the bucket's sequence is their number
	bucketReceiptKeys: "receiptKeys", // plugin id NUL action NUL idempotency key → receipt id
}

var formatKey = []byte("format")

// checkFormat returns nil if the database has the known format, else a
// *FormatError or *CorruptError.
func (d *DB) checkFormat(tx *Tx) error {
	found, err := tx.format()
	if err != nil {
		return err
	}
	if found != d.known() {
		return &FormatError{Path: tx.path, Found: found, Known: d.known()}
	}
	return nil
}

func (tx *Tx) format() (int, error) {
	v, err := tx.get(bucketMeta, formatKey)
	if errors.Is(err, ErrNotFound) {
		return 0, &CorruptError{Path: tx.path, Detail: "it does not say its format"}
	}
	if err != nil {
		return 0, err
	}
	found, err := strconv.Atoi(string(v))
	if err != nil || found < firstFormat {
		return 0, &CorruptError{Path: tx.path, Detail: fmt.Sprintf("format %q", v), Cause: err}
	}
	return found, nil
}

// migrate brings an older database to the known format in one committed
// transaction of its own, so that a failing change afterwards does not undo it.
func (d *DB) migrate(w *writer) error {
	return w.run(func(tx *Tx) error {
		found, err := tx.format()
		if err != nil {
			return err
		}
		if found > d.known() {
			return &FormatError{Path: w.path, Found: found, Known: d.known()}
		}
		for ; found < d.known(); found++ {
			if err := d.migrations[found-firstFormat](tx.bolt); err != nil {
				return fmt.Errorf("%s: migration from format %d: %w", w.path, found, err)
			}
			if err := tx.put(bucketMeta, formatKey, strconv.AppendInt(nil, int64(found)+1, 10)); err != nil {
				return err
			}
		}
		return nil
	})
}

// create makes a new database under another name and renames it into place, so
// that state.db is absent or complete, never half made. The caller holds the
// exclusive side lock.
func (d *DB) create() error {
	temporary := d.Path() + ".new"
	if err := os.Remove(temporary); err != nil && !os.IsNotExist(err) {
		return err
	}
	b, err := bolt.Open(temporary, 0o600, &bolt.Options{NoStatistics: true, Timeout: foreignWait})
	if err != nil {
		return err
	}
	err = b.Update(func(tx *bolt.Tx) error {
		for _, name := range bucketNames {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		return tx.Bucket([]byte(bucketNames[bucketMeta])).Put(formatKey, strconv.AppendInt(nil, int64(d.known()), 10))
	})
	if closed := b.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(temporary, d.Path())
	}
	if err != nil {
		_ = os.Remove(temporary)
		return fmt.Errorf("create %s: %w", d.Path(), err)
	}
	return syncDir(filepath.Dir(d.Path()))
}
