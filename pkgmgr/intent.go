package pkgmgr

import (
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
)

// An action is a kind of change that takes several visible steps.
type action string

const (
	// actPublish puts Record's tree into the store and, with Default, below
	// plugins/. It is decided by the commit of its record.
	actPublish action = "publish"
	// actRemove takes Packages away. It is decided by the commit that forgets them.
	actRemove action = "remove"
	// actQuarantine moves what Denial covers to quarantine. It is decided by the
	// denial's place in the list of denials.
	actQuarantine action = "quarantine"
	// actRelease brings Packages back from quarantine. It is decided when no
	// denial of the list has Denial's subject any more.
	actRelease action = "release"
)

// An intent is written before the first visible step of a change and says all that
// is needed to finish or undo it. Each action names the one step that decides it: a
// change that was interrupted before is undone, after it is finished.
type intent struct {
	Action   action        `json:"action"`
	Record   state.Install `json:"record,omitzero"`
	Tree     bool          `json:"tree,omitzero"`    // the stage's tree goes into the store
	Archive  bool          `json:"archive,omitzero"` // the stage holds an archive
	Default  bool          `json:"default,omitzero"` // the stage's default goes to plugins/<id>
	Packages []holding     `json:"packages,omitzero"`
	Denial   Denial        `json:"denial,omitzero"`
}

const intentFile = "intent"

// writeIntent writes the intent. It is durable after sync.
func (s *stage) writeIntent(in intent) error {
	raw, err := json.Marshal(in)
	if err != nil {
		return err
	}
	if err := step("intent"); err != nil {
		return err
	}
	return os.WriteFile(s.join(intentFile), raw, 0o600)
}

// syncIntent makes the intent durable for a change that stages no files.
func (s *stage) syncIntent() error {
	f, err := os.Open(s.join(intentFile))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return err
	}
	return syncDirs(s.path, filepath.Dir(s.path))
}

// readIntent returns the intent, or false where the change had not begun: its
// intent is missing, was not written to the end or is no file of this program.
func (s *stage) readIntent() (intent, bool) {
	var in intent
	raw, err := readOwn(s.join(intentFile), maxIntentBytes)
	if err != nil || json.Unmarshal(raw, &in) != nil {
		return intent{}, false
	}
	return in, true
}
