package pkgmgr

import (
	"errors"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// optional turns "no such record" into nil.
func optional[T any](record T, err error) (*T, error) {
	switch {
	case err == nil:
		return &record, nil
	case errors.Is(err, state.ErrNotFound):
		return nil, nil
	}
	return nil, err
}

// Kinds of history events.
const (
	EventInstall        = "install"
	EventUse            = "use"
	EventUninstall      = "uninstall"
	EventTrust          = "trust"
	EventUntrust        = "untrust"
	EventEnable         = "enable"
	EventDisable        = "disable"
	EventChanged        = "changed"
	EventRevoke         = "revoke"
	EventUnrevoke       = "unrevoke"
	EventProjectTrust   = "project.trust"
	EventProjectUntrust = "project.untrust"
	EventLockApproval   = "lock.approval"
	EventCall           = "call"
	EventAbandoned      = "operation.abandoned"
	EventRepair         = "state.repair"
)

func (h *Home) event(kind, id, version string, pkg digest.Digest, detail map[string]string) state.Event {
	return state.Event{At: h.now().UTC(), Kind: kind, ID: id, Version: version, Package: pkg, Detail: detail}
}
