package pkgmgr

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/switchyard-plugins/switchyard/lockfile/textfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr/settings"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/ijson"
	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
	"github.com/switchyard-plugins/switchyard/schemas/subset"
)

const (
	settingsDir      = "settings" // holds one file for each plugin that has settings
	maxSettingsBytes = 1 << 20
)

// NoSettings says that a package lets nothing be set.
type NoSettings struct{ ID, Version string }

func (e *NoSettings) Error() string { return e.ID + " " + e.Version + " has no settings" }

// SettingsFault says that settings do not fit their schema. Its problems name places and
// quote no value.
type SettingsFault struct {
	ID, Version string
	Problems    []subset.Problem
}

func (e *SettingsFault) Error() string {
	text := "the settings of " + e.ID + " " + e.Version + ": " + e.Problems[0].String()
	if n := len(e.Problems) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more)", n)
	}
	return text
}

// Settings are what a person set for a session plugin, beside the schema that one of its
// packages has for them. They belong to the plugin's id: another version of it gets the
// same, if its schema takes them.
type Settings struct {
	ID, Version   string // of the package that the schema is of
	SchemaID      string
	SchemaVersion string // the settings' version that the package states
	Schema        *subset.Schema
	Text          json.RawMessage // one object, {} where nothing is set
	SetFor        string          // the settings' version that they were set for last; "" where nothing is set
}

// Notes says what the schema's annotations say of the settings.
func (s *Settings) Notes() []subset.Note { return s.Schema.Notes(s.Text) }

// Shown returns the settings with what is private masked.
func (s *Settings) Shown() json.RawMessage { return settings.Shown(s.Text, s.Notes()) }

// Problems returns what the schema has against the settings. What is missing, and only
// that, may be set later.
func (s *Settings) Problems() (wrong, missing []subset.Problem) {
	for _, p := range s.Schema.Validate(s.Text) {
		if p.Missing {
			missing = append(missing, p)
		} else {
			wrong = append(wrong, p)
		}
	}
	return wrong, missing
}

// settingsFile is what the file of a plugin's settings holds.
type settingsFile struct {
	Version  string          `json:"version"`
	Settings json.RawMessage `json:"settings"`
}

// SettingsOf returns the settings of the package that ref selects under lock.
// *NoSettings: it has none.
func (h *Home) SettingsOf(ctx context.Context, ref Ref, lock *Lock) (*Settings, error) {
	s, err := h.settingsSchema(ctx, ref, lock)
	if err != nil {
		return nil, err
	}
	s.SetFor, s.Text, err = h.storedSettings(s.ID)
	if s.Text == nil {
		s.Text = json.RawMessage("{}")
	}
	return s, err
}

// StoredSettings returns what was set for a plugin, nil if nothing was.
func (h *Home) StoredSettings(id string) (json.RawMessage, error) {
	_, text, err := h.storedSettings(id)
	return text, err
}

func (h *Home) settingsPath(id string) string { return h.join(settingsDir, id+".json") }

func (h *Home) storedSettings(id string) (version string, text json.RawMessage, err error) {
	raw, err := readOwn(h.settingsPath(id), maxSettingsBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	f, err := h.readSettings(id, raw)
	if err != nil {
		return "", nil, err
	}
	return f.Version, f.Settings, nil
}

func (h *Home) readSettings(id string, raw []byte) (*settingsFile, error) {
	var f settingsFile
	err := ijson.Unmarshal(raw, &f)
	if err == nil {
		var d *settings.Document
		if d, err = settings.Parse(f.Settings); err == nil {
			f.Settings = d.JSON()
		}
	}
	if err != nil {
		return nil, &Malformed{Where: h.join(settingsDir), File: id + ".json", Err: err}
	}
	return &f, nil
}

// EditSettings changes settings. What the schema refuses, other than by something that is
// still missing, is *SettingsFault, and nothing is changed then. last, if not nil, has the
// last word on what the schema takes. Errors of edit and last are returned.
func (h *Home) EditSettings(ctx context.Context, ref Ref, lock *Lock, edit func(*settings.Document) error, last func(*Settings) error) (*Settings, error) {
	s, err := h.settingsSchema(ctx, ref, lock)
	if err != nil {
		return nil, err
	}
	if err := h.ensure(settingsDir); err != nil {
		return nil, err
	}
	var fault error // edit's and the schema's, which are not the file's
	err = textfile.EditPrivate(h.settingsPath(s.ID), maxSettingsBytes, func(old []byte, exists bool) ([]byte, error) {
		d := new(settings.Document)
		if exists {
			var before *settingsFile
			if before, fault = h.readSettings(s.ID, old); fault != nil {
				return nil, fault
			}
			if d, fault = settings.Parse(before.Settings); fault != nil {
				return nil, fault
			}
		}
		if fault = edit(d); fault != nil {
			return nil, fault
		}
		s.Text, s.SetFor = d.JSON(), s.SchemaVersion
		if wrong, _ := s.Problems(); len(wrong) > 0 {
			fault = &SettingsFault{s.ID, s.Version, wrong}
			return nil, fault
		}
		if last != nil {
			if fault = last(s); fault != nil {
				return nil, fault
			}
		}
		text, err := json.Marshal(settingsFile{s.SchemaVersion, s.Text})
		if err == nil && len(text) >= maxSettingsBytes {
			err = fmt.Errorf("the settings of %s have more than %d bytes", s.ID, maxSettingsBytes)
			fault = err
		}
		var out bytes.Buffer
		if err == nil {
			err = json.Indent(&out, text, "", "  ")
		}
		out.WriteByte('\n')
		return out.Bytes(), err
	})
	switch {
	case fault != nil:
		return nil, fault
	case err != nil:
		return nil, h.cannotWrite("settings", err)
	}
	return s, nil
}

// RemoveSettings forgets everything that was set for a plugin, whether it is installed or
// not, and reports whether there was something.
func (h *Home) RemoveSettings(id string) (bool, error) {
	err := os.Remove(h.settingsPath(id))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, h.cannotWrite("settings", err)
	}
	return true, nil
}

// settingsSchema reads the schema of the settings of the package that ref selects, and
// holds it to the digest of its manifest.
func (h *Home) settingsSchema(ctx context.Context, ref Ref, lock *Lock) (*Settings, error) {
	sel, err := h.selectPackage(ctx, ref, lock, lockGuides, "")
	if err != nil {
		return nil, err
	}
	m, _, err := sel.recordedManifest(h)
	if err != nil {
		return nil, err
	}
	out := &Settings{ID: ref.ID, Version: m.Version}
	if m.Session == nil || m.Session.Settings == nil || m.Session.Settings.Schema == nil {
		return nil, &NoSettings{ref.ID, m.Version}
	}
	out.SchemaID, out.SchemaVersion = m.Session.Settings.Schema.URI, sessionmanifest.Or(m.Session.Settings.Version, "")
	want, err := digest.Parse(m.Session.Settings.Schema.Digest)
	if err != nil {
		return nil, err
	}
	out.Schema, err = schemaOf(sel.path, out.SchemaID, want)
	return out, err
}

// schemaOf returns the schema with an $id and a digest among those of a package.
func schemaOf(tree, id string, want digest.Digest) (*subset.Schema, error) {
	root, err := openTree(tree)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	names, err := readNames(filepath.Join(tree, sessionmanifest.SchemasDir))
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		names[i] = sessionmanifest.SchemasDir + "/" + name
	}
	found, err := readSchemas(root, names, tree)
	if err != nil {
		return nil, err
	}
	s, ok := found[id]
	switch {
	case !ok:
		return nil, &Malformed{Where: tree, File: sessionmanifest.FileName, Err: missingSchema("/settings/schema", id)}
	case s.sum != want:
		return nil, &Integrity{What: "schema " + id, Expected: want, Found: s.sum, Where: tree}
	}
	document, err := readSchema(root, s.file)
	if err != nil {
		return nil, err
	}
	return subset.Compile(document)
}
