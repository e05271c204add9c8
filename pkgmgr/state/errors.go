package state

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

var (
	// ErrNotFound: there is no such record.
	ErrNotFound = errors.New("no such record")
	// ErrReadOnly: the data directory cannot be written.
	ErrReadOnly = errors.New("the data directory is read-only")
	// ErrMissing: packages are installed but their database is gone. Rebuild starts a new one.
	ErrMissing = errors.New("the database is missing beside installed packages")
	// ErrCorrupt: the database is damaged. Matched by *CorruptError.
	ErrCorrupt = errors.New("the database is damaged")
	// ErrNewer: a newer program wrote the database. Matched by *FormatError.
	ErrNewer = errors.New("the database has a newer format than this program knows")
	// ErrOlder: the database must be migrated and the data directory is
	// read-only. Matched by *FormatError.
	ErrOlder = errors.New("the database has an older format and cannot be migrated on a read-only data directory")
	// ErrBusy: the lock was not obtained before the context ended. The error
	// also matches the context's.
	ErrBusy = errors.New("another process holds the database")
	// ErrTransition: an operation is not in the state that the change starts from. Matched by *TransitionError.
	ErrTransition = errors.New("the operation's state does not allow this")
	// ErrExists: an operation with that id is recorded already.
	ErrExists = errors.New("the operation exists already")
	// ErrKeyRunning: an operation with that idempotency key is running. Matched by *KeyError.
	ErrKeyRunning = errors.New("an operation with that idempotency key is running")
	// ErrRecord: a record breaks a rule of storage (empty key, over its bound). It is the caller's mistake.
	ErrRecord = errors.New("the record cannot be stored")
	// ErrTxDone: a Tx was used after its function returned.
	ErrTxDone = errors.New("the transaction is over")
)

// A CorruptError says which file is damaged and what was seen.
type CorruptError struct {
	Path   string
	Detail string
	Cause  error // may be nil
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s: %v: %s", e.Path, ErrCorrupt, e.Detail)
}

func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }
func (e *CorruptError) Unwrap() error        { return e.Cause }

// A FormatError names the format that was found and the one this program knows.
type FormatError struct {
	Path         string
	Found, Known int
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%s: %v: it has format %d, this program knows format %d", e.Path, e.kind(), e.Found, e.Known)
}

func (e *FormatError) kind() error {
	if e.Found > e.Known {
		return ErrNewer
	}
	return ErrOlder
}

func (e *FormatError) Is(target error) bool { return target == e.kind() }

// A TransitionError names an operation and the change that its state forbids.
type TransitionError struct {
	ID       string
	From, To OperationState
}

func (e *TransitionError) Error() string {
	return fmt.Sprintf("operation %s: %s to %s: %v", e.ID, e.From, e.To, ErrTransition)
}

func (e *TransitionError) Is(target error) bool { return target == ErrTransition }

// A KeyError names the running operation that holds an idempotency key.
type KeyError struct {
	Key string
	ID  string // the running operation
}

func (e *KeyError) Error() string {
	return fmt.Sprintf("idempotency key %q: operation %s: %v", e.Key, e.ID, ErrKeyRunning)
}

func (e *KeyError) Is(target error) bool { return target == ErrKeyRunning }

// readOnly reports whether err, met while opening something for writing, says
// that this user cannot write there.
func readOnly(err error) bool {
	return errors.Is(err, ErrReadOnly) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}
