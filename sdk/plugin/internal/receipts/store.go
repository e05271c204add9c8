// Package receipts keeps the durable records of a plugin's operations, so that an
// effect under one idempotency key happens once, whatever is killed and however often
// it is asked for (docs/protocol-session.md, section "The receipt store").
//
// It decides which request may run. It does not know what an operation does, and it
// writes nothing that a request or a result holds but the result itself, where that
// is kept.
package receipts

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// Directory is the store's place below a plugin's private directory.
const Directory = "receipts"

// A Store is the records of one plugin. Any number of processes may use the same
// directory at a time, and any number of goroutines one Store.
type Store struct {
	dir  string
	made sync.Once
	now  func() time.Time
	step func(string) // told before each step on the disk; for tests that stop there
}

// Open returns the store below a plugin's private directory. Nothing is created
// before the first claim.
func Open(state string) *Store {
	return &Store{dir: filepath.Join(state, Directory), now: time.Now, step: func(string) {}}
}

// Lifetime returns for how long a receipt deduplicates, from its claim on.
func Lifetime(r wire.Retention) time.Duration {
	const day = 24 * time.Hour
	switch r {
	case wire.RetentionNone:
		return 7 * day
	case wire.RetentionEphemeral:
		return day
	case wire.RetentionAudit:
		return 365 * day
	}
	return 30 * day
}

// A Refusal is why a request neither runs nor is answered from its record.
type Refusal struct {
	Code     wire.Code
	Message  string
	Receipt  *wire.Receipt // of the earlier attempt; nil if it is not to be told
	Existing wire.NullUUID // the operation that is running
}

func (r *Refusal) Error() string { return r.Message }

// name returns the name of the files of a dedup tuple.
func name(pluginID, capabilityID, operationName, key string) string {
	doc := wire.AppendString([]byte(`{"capabilityId":`), capabilityID)
	doc = wire.AppendString(append(doc, `,"idempotencyKey":`...), key)
	doc = wire.AppendString(append(doc, `,"operationName":`...), operationName)
	doc = wire.AppendString(append(doc, `,"pluginId":`...), pluginID)
	return hash(append(doc, '}'))
}

// nameByID returns the name of the files of an operation without a key.
func nameByID(id wire.UUID) string {
	return hash([]byte(`{"receiptId":"` + id.String() + `"}`))
}

func hash(canonical []byte) string {
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])
}

func nameOf(r *wire.Receipt) string {
	if r.IdempotencyKey == "" {
		return nameByID(r.ReceiptID)
	}
	return name(r.PluginID, r.CapabilityID, r.OperationName, r.IdempotencyKey)
}

func (s *Store) path(name, suffix string) string { return filepath.Join(s.dir, name+suffix) }

func (s *Store) create() (err error) {
	s.made.Do(func() { err = os.MkdirAll(s.dir, 0o700) })
	return err
}

// read returns a record, or nil if there is none.
func (s *Store) read(name string) (*Record, error) {
	data, err := os.ReadFile(s.path(name, ".json"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	r, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("the record %s.json is damaged: %w", name, err)
	}
	return r, nil
}

// write puts a record on the disk: all of it or nothing.
func (s *Store) write(name string, r *Record) error {
	s.step("create")
	f, err := os.CreateTemp(s.dir, name+".*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once it is renamed
	s.step("write")
	_, err = f.Write(r.appendJSON(nil))
	s.step("sync")
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	s.step("rename")
	if err := os.Rename(f.Name(), s.path(name, ".json")); err != nil {
		return err
	}
	s.step("directory")
	return syncDirectory(s.dir)
}

// Find returns the receipt that a query asks for, as it is now, or nil.
func (s *Store) Find(q *wire.ReceiptQuery) (*wire.Receipt, error) {
	if !q.ReceiptID.Set {
		return s.current(name(q.PluginID, q.CapabilityID, q.OperationName, q.IdempotencyKey))
	}
	found, err := s.current(nameByID(q.ReceiptID.UUID))
	if found != nil || err != nil {
		return found, err
	}
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok {
			continue
		}
		if r, err := s.read(name); err == nil && r != nil && r.Receipt.ReceiptID == q.ReceiptID.UUID {
			return s.current(name)
		}
	}
	return nil, err
}

// current returns the receipt of a record: abandoned, if it says in_progress and
// nobody holds its claim.
func (s *Store) current(name string) (*wire.Receipt, error) {
	r, err := s.read(name)
	if r == nil || err != nil || r.Receipt.ExecutionState != wire.ExecutionInProgress {
		return receiptOf(r), err
	}
	lock, err := tryLock(s.path(name, ".lock"))
	if lock == nil || err != nil {
		return receiptOf(r), err
	}
	defer lock.Close()
	// It may have ended between the two looks.
	if r, err = s.read(name); r == nil || err != nil {
		return nil, err
	}
	if r.Receipt.ExecutionState == wire.ExecutionInProgress {
		abandon(&r.Receipt)
	}
	return &r.Receipt, nil
}

func receiptOf(r *Record) *wire.Receipt {
	if r == nil {
		return nil
	}
	return &r.Receipt
}

func abandon(r *wire.Receipt) {
	r.ExecutionState, r.EffectState = wire.ExecutionAbandoned, wire.EffectUnknown
}

// Sweep removes records that have expired and what processes that died left behind.
func (s *Store) Sweep() error {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	const forgotten = time.Hour // no write takes that long
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".tmp") {
			if info, err := e.Info(); err == nil && s.now().Sub(info.ModTime()) > forgotten {
				os.Remove(s.path(e.Name(), ""))
			}
			continue
		}
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok {
			s.sweep(name)
		}
	}
	return err
}

func (s *Store) sweep(name string) {
	expired := func() bool {
		r, err := s.read(name)
		return err == nil && r != nil && !s.now().Before(r.Receipt.ExpiresAt)
	}
	if !expired() {
		return
	}
	lock, err := tryLock(s.path(name, ".lock"))
	if lock == nil || err != nil {
		return // somebody is at it
	}
	defer lock.Close()
	if expired() {
		os.Remove(s.path(name, ".json"))
	}
}
