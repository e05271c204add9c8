package commands

import (
	"errors"
	"syscall"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
)

// classifyState knows the data directory and its database.
func (in *invocation) classifyState(err error, f *failure) bool {
	var (
		busy       *pkgmgr.Busy
		superseded *pkgmgr.Superseded
		unsafe     *pkgmgr.UnsafeDirectory
		readOnly   *pkgmgr.ReadOnly
		key        *state.KeyError
	)
	switch {
	case errors.As(err, &busy):
		f.exit, f.code = exitBusy, "busy"
		if busy.Operation != "" {
			f.hint = in.next("operations", "show", busy.Operation)
		}
		f.details = busyDetails{busy.What, busy.Operation}
	case errors.As(err, &key):
		f.exit, f.code, f.hint = exitBusy, "busy", in.next("operations", "show", key.ID)
		f.details = busyDetails{"idempotency key " + key.Key, key.ID}
	case errors.Is(err, state.ErrBusy):
		f.exit, f.code = exitBusy, "busy"
	case errors.As(err, &superseded):
		f.exit, f.code, f.hint = exitBusy, "busy.replaced", in.again()
	case errors.As(err, &unsafe):
		f.exit, f.code, f.hint = exitPermission, "permission.data_dir", in.unsafeDirHint(unsafe.Path)
	case errors.As(err, &readOnly), errors.Is(err, state.ErrReadOnly):
		f.exit, f.code, f.hint = exitPermission, "permission.read_only", in.readOnlyHint()
	case errors.Is(err, state.ErrMissing):
		f.code, f.hint = "state.missing", in.next("doctor", "--repair")
	case errors.Is(err, state.ErrCorrupt):
		f.code, f.hint = "state.corrupt", in.next("doctor", "--repair")
	case errors.Is(err, state.ErrNewer), errors.Is(err, state.ErrOlder):
		f.code = "state.format"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		f.code, f.hint = "disk.full", in.next("gc")
	default:
		return false
	}
	return true
}
