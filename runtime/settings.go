package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/settings"
	"github.com/switchyard-plugins/switchyard/runtime/process/redact"
	"github.com/switchyard-plugins/switchyard/runtime/secret"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// StoredSettings says that what was set for a plugin does not fit the package that is to
// be started.
type StoredSettings struct {
	ID  string
	Err error
}

func (e *StoredSettings) Error() string { return "what is set for " + e.ID + ": " + e.Err.Error() }
func (e *StoredSettings) Unwrap() error { return e.Err }

// Secrets is where this host keeps and looks for secrets.
func (h *Host) Secrets() *secret.Store {
	return &secret.Store{Dir: h.Home.Path(), Keys: filepath.Join(h.Home.Path(), KeysDir), Lookup: h.Lookup}
}

// settings returns what init tells: what the caller gave, else what was set for the
// plugin. A package that asks for settings.read gets it only with that grant, and it must
// fit the settings' schema. The secrets that it refers to are made ready for requests.
func (r *hosting) settings() (json.RawMessage, error) {
	none := json.RawMessage("{}")
	id, m := r.approval.Manifest.ID, r.approval.Manifest.Session
	text, stored := r.terms.Settings, false
	if len(text) == 0 {
		var err error
		if text, err = r.host.Home.StoredSettings(id); err != nil {
			return nil, err
		}
		stored = text != nil
	}
	if len(text) == 0 {
		return none, nil
	}
	if scope := manifest.Scope(sessionmanifest.ScopeSettingsRead); r.approval.Manifest.Requests(scope) && !slices.Contains(r.approval.Grants, scope) {
		if !stored {
			return nil, &pkgmgr.Denied{ID: id, Scope: scope}
		}
		r.warnings = append(r.warnings, "what is set for it was not given to it: "+string(scope)+" is not granted")
		return none, nil
	}
	if m.Settings == nil || m.Settings.Schema == nil {
		if stored { // by another version of it
			return none, nil
		}
		return text, nil
	}
	schema := r.schemas[m.Settings.Schema.URI]
	if f := validator(schema)(text); f != nil {
		if stored {
			return nil, &StoredSettings{id, f}
		}
		return nil, fmt.Errorf("%w: the settings: %w", ErrRequest, f)
	}
	if r.healthOnly { // secrets go with requests
		return text, nil
	}
	document, err := settings.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w: the settings: %w", ErrRequest, err)
	}
	var values []string
	for _, note := range schema.Notes(text) {
		if !note.Secret {
			continue
		}
		place, err := document.Get(note.Pointer)
		if err != nil {
			return nil, err
		}
		ref, ok := secret.RefOf(place)
		if !ok { // an alternative that holds something else
			continue
		}
		value, err := r.host.Secrets().Resolve(id, ref)
		var unresolved *secret.Unresolved
		if errors.As(err, &unresolved) {
			unresolved.Pointer = note.Pointer
		}
		if err != nil {
			return nil, err
		}
		r.secrets = append(r.secrets, wire.Secret{Pointer: note.Pointer, Value: value})
		values = append(values, value)
	}
	r.masked = redact.NewValues(values)
	return text, nil
}
