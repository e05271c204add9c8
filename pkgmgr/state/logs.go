package state

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// KeepLogs is how many log entries are kept for each plugin id, the newest.
const KeepLogs = 1000

// A LogEntry is one line that a plugin wrote to its stderr, redacted and cut by
// the supervisor.
type LogEntry struct {
	Seq       uint64 // set by AppendLogs: rises by one within a plugin id
	At        time.Time
	ID        string // plugin id
	Package   digest.Digest
	Call      string // id of the call
	Line      string
	Truncated bool
}

// AppendLogs adds entries of one plugin id, in order, and drops the oldest beyond
// KeepLogs. The entries' ID and Seq are set to what is stored.
func (tx *Tx) AppendLogs(id string, entries []LogEntry) error {
	if len(entries) == 0 {
		return nil
	}
	if id == "" {
		return fmt.Errorf("%w: logs: no plugin id", ErrRecord)
	}
	logs, err := tx.writableBucket(bucketLogs)
	if err != nil {
		return err
	}
	b, err := logs.CreateBucketIfNotExists([]byte(id))
	if err != nil {
		return fmt.Errorf("%s: logs of %q: %w", tx.path, id, err)
	}
	for i := range entries {
		seq := b.Sequence() + uint64(i) + 1
		entries[i].ID, entries[i].Seq = id, seq
		if len(entries)-i > KeepLogs {
			continue // would be dropped again below
		}
		if err := b.Put(sequenceKey(seq), encodeLog(entries[i])); err != nil {
			return fmt.Errorf("%s: logs of %q: %w", tx.path, id, err)
		}
	}
	b.FillPercent = 0.9 // keys only rise
	if err := b.SetSequence(b.Sequence() + uint64(len(entries))); err != nil {
		return err
	}
	return dropOldest(b, KeepLogs)
}

func encodeLog(r LogEntry) []byte {
	e := newEncoder(160 + len(r.Line))
	e.time(r.At)
	e.digest(r.Package)
	e.text(r.Call)
	e.text(r.Line)
	if r.Truncated {
		e.uint(1)
	} else {
		e.uint(0)
	}
	return e.b
}

// Logs returns the newest limit entries of a plugin id whose Seq is above after,
// oldest first. A limit below one means all. To follow, pass the last Seq.
func (tx *Tx) Logs(id string, after uint64, limit int) ([]LogEntry, error) {
	list := []LogEntry{}
	logs, err := tx.tree(bucketLogs)
	if err != nil || logs == nil || id == "" {
		return list, err
	}
	t, err := logs.child([]byte(id))
	if err != nil || t == nil {
		return list, asCorrupt(tx.path, err)
	}
	err = tx.eachBackwards(bucketLogs, t, func(k, v []byte) error {
		seq, err := tx.sequence(bucketLogs, k)
		switch {
		case err != nil:
			return err
		case seq <= after:
			return errStop
		}
		d := newDecoder(v)
		r := LogEntry{Seq: seq, ID: id, At: d.time(), Package: d.digest(), Call: d.text(), Line: d.text(), Truncated: d.uint() == 1}
		if err := d.err(); err != nil {
			return tx.damaged(bucketLogs, []byte(id), err)
		}
		list = append(list, r)
		return stopAt(limit, len(list))
	})
	if err != nil {
		return nil, err
	}
	slices.Reverse(list)
	return list, nil
}

// sequenceKey sorts like seq.
func sequenceKey(seq uint64) []byte { return binary.BigEndian.AppendUint64(nil, seq) }

func (tx *Tx) sequence(id bucketID, key []byte) (uint64, error) {
	if len(key) != 8 {
		return 0, tx.damaged(id, key, errEncoding)
	}
	return binary.BigEndian.Uint64(key), nil
}

// dropOldest removes the entries of a bucket of consecutive sequence keys that
// are not among the newest keep. It costs what it removes.
func dropOldest(b *bolt.Bucket, keep uint64) error {
	last := b.Sequence()
	if last <= keep {
		return nil
	}
	c := b.Cursor()
	for k, _ := c.First(); len(k) == 8 && binary.BigEndian.Uint64(k) <= last-keep; k, _ = c.First() {
		if err := c.Delete(); err != nil {
			return err
		}
	}
	return nil
}
