package runtime

import (
	"encoding/json"
	"fmt"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
)

// settings returns what init tells: what the caller gave, which a package that asks for
// settings.read gets only with that grant, and which its settings' schema must take.
func (r *hosting) settings() (json.RawMessage, error) {
	given, m := r.terms.Settings, r.approval.Manifest.Session
	if len(given) == 0 {
		given = json.RawMessage("{}")
	} else if scope := sessionmanifest.ScopeSettingsRead; r.approval.Manifest.Requests(manifest.Scope(scope)) && !granted(r.approval, scope) {
		return nil, &pkgmgr.Denied{ID: r.approval.Manifest.ID, Scope: manifest.Scope(sessionmanifest.ScopeSettingsRead)}
	}
	if m.Settings == nil || m.Settings.Schema == nil || len(r.terms.Settings) == 0 {
		return given, nil
	}
	if f := validator(r.schemas[m.Settings.Schema.URI])(given); f != nil {
		return nil, fmt.Errorf("%w: the settings: %w", ErrRequest, f)
	}
	return given, nil
}

func granted(a *pkgmgr.Approval, scope sessionmanifest.Scope) bool {
	for _, s := range a.Grants {
		if s == manifest.Scope(scope) {
			return true
		}
	}
	return false
}
