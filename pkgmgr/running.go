package pkgmgr

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/gofrs/flock"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// A Call is one use of a plugin in progress. Its marker running/<id> is locked by
// the process that supervises it and exists before anything is decided, so that a
// revocation either is seen by the decision or finds the marker. A marker whose
// lock is free belongs to a supervisor that died.
type Call struct {
	ID   string // UUIDv7; also the operation's id and the mark of its processes
	home *Home
	lock *flock.Flock // nil on a read-only data directory
}

// callMarker is the marker's content: what a revocation compares.
type callMarker struct {
	PluginID    string        `json:"pluginId"`
	Version     string        `json:"version"`
	Package     digest.Digest `json:"package"`
	Archive     digest.Digest `json:"archive"`
	Manifest    digest.Digest `json:"manifest"`
	Fingerprint digest.Digest `json:"fingerprint"`
	Operation   bool          `json:"operation"`
	Publisher   string        `json:"publisher,omitempty"`
}

func (m callMarker) subject() subject {
	return subject{ID: m.PluginID, Version: m.Version, Package: m.Package, Archive: m.Archive,
		Manifest: m.Manifest, Fingerprint: m.Fingerprint, Publisher: m.Publisher}
}

// StopReason is why a call is asked to stop.
type StopReason string

// The reasons that a stop request carries.
const (
	StopCancelled StopReason = "cancel"
	StopRevoked   StopReason = "revoke"
)

// stopReasons is every reason, the one that wins first.
var stopReasons = [...]StopReason{StopRevoked, StopCancelled}

// beginCall marks a call as running. On a read-only data directory nothing can be
// marked: such a call is not found by a revocation and its leftovers, should the
// supervisor be killed, are not ended by the next command.
func (h *Home) beginCall(m callMarker) (*Call, error) {
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("call marker: %w", err)
	}
	// Another process that looks for dead calls may take a marker between its
	// creation and its lock for a dead one; then the next id is tried.
	for range 8 {
		id := newUUID(h.now())
		c := &Call{ID: id, home: h}
		var readOnly *ReadOnly
		lock, err := createLocked(h.join(runningDir, c.ID), raw)
		switch {
		case err == nil:
			c.lock = lock
			return c, nil
		case isReadOnly(err):
			return c, nil
		case errors.Is(err, fs.ErrExist):
			continue
		case errors.Is(err, fs.ErrNotExist):
			if err := h.ensure(runningDir); err != nil && !errors.As(err, &readOnly) {
				return nil, err
			} else if err != nil {
				return c, nil
			}
		default:
			return nil, fmt.Errorf("call marker: %w", err)
		}
	}
	return nil, fmt.Errorf("call marker in %s: %w", h.join(runningDir), fs.ErrExist)
}

// End removes the marker. It may be called more than once.
func (c *Call) End() {
	if c.lock == nil {
		return
	}
	for _, why := range stopReasons {
		os.Remove(c.home.stopPath(c.ID, why))
	}
	os.Remove(c.home.join(runningDir, c.ID))
	c.lock.Unlock()
	c.lock = nil
}

// A stop request is an empty file beside the marker: it is there or it is not, and
// nothing of it can be half written.
func (h *Home) stopPath(callID string, why StopReason) string {
	return h.join(runningDir, callID+"."+string(why))
}

// StopPoll is how often a supervisor looks for a stop request.
const StopPoll = 25 * time.Millisecond

// StopRequested reports whether another process asked this call to stop, and why.
func (c *Call) StopRequested() (StopReason, bool) {
	if c.lock == nil {
		return "", false
	}
	for _, why := range stopReasons {
		if exists(c.home.stopPath(c.ID, why)) {
			return why, true
		}
	}
	return "", false
}

// requestStop asks the supervisor of a running call to end it. It reports whether
// such a call is running.
func (h *Home) requestStop(callID string, why StopReason) (bool, error) {
	if !isUUID(callID) || !h.callAlive(callID) {
		return false, nil
	}
	path := h.stopPath(callID, why)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|noWait, 0o600)
	if err != nil {
		return false, h.cannotWrite("stop request", err)
	}
	f.Close()
	if !h.callAlive(callID) { // it ended meanwhile, perhaps before it could remove the file
		os.Remove(path)
		return false, nil
	}
	return true, nil
}

// removeStaleStops removes stop requests whose call has ended.
func (h *Home) removeStaleStops() {
	entries, _ := os.ReadDir(h.join(runningDir))
	for _, e := range entries {
		id, _, isStop := strings.Cut(e.Name(), ".")
		if isStop && isUUID(id) && !exists(h.join(runningDir, id)) {
			os.Remove(h.join(runningDir, e.Name()))
		}
	}
}

// callAlive reports whether a supervisor holds the call's marker.
func (h *Home) callAlive(callID string) bool { return held(h.join(runningDir, callID)) }

// stopCovered asks every running call that a denial covers to stop, and returns
// their number.
func (h *Home) stopCovered(d Denial) (int, error) {
	n := 0
	for _, id := range h.callIDs() {
		m, err := h.readMarker(id)
		if err != nil || !d.covers(m.subject()) {
			continue
		}
		stopped, err := h.requestStop(id, StopRevoked)
		if err != nil {
			return n, err
		}
		if stopped {
			n++
		}
	}
	return n, nil
}

func (h *Home) readMarker(callID string) (m callMarker, err error) {
	raw, err := readOwn(h.join(runningDir, callID), maxMarkerBytes)
	if err == nil {
		err = json.Unmarshal(raw, &m)
	}
	return m, err
}

func (h *Home) callIDs() []string {
	entries, err := os.ReadDir(h.join(runningDir))
	if err != nil {
		return nil
	}
	var ids []string
	for _, e := range entries {
		if isUUID(e.Name()) {
			ids = append(ids, e.Name())
		}
	}
	return ids
}

// DeadCalls returns the ids of calls whose supervisor died without ending them.
func (h *Home) DeadCalls() []string {
	var dead []string
	for _, id := range h.callIDs() {
		if !h.callAlive(id) {
			dead = append(dead, id)
		}
	}
	return dead
}

// removeMarker removes a dead call's marker, unless somebody took it over.
func (h *Home) removeMarker(callID string) error {
	path := h.join(runningDir, callID)
	lock, ok, err := lockExisting(path)
	if err != nil {
		return h.cannotWrite("call marker", err)
	}
	if !ok {
		return nil
	}
	defer lock.Unlock()
	for _, why := range stopReasons {
		if err := os.Remove(h.stopPath(callID, why)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return h.cannotWrite("call marker", err)
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return h.cannotWrite("call marker", err)
	}
	return nil
}

// inUse returns the id of a running call of the package.
func (h *Home) inUse(pkg digest.Digest) (string, bool) {
	if pkg == "" {
		return "", false
	}
	for _, id := range h.callIDs() {
		if m, err := h.readMarker(id); err == nil && m.Package == pkg && h.callAlive(id) {
			return id, true
		}
	}
	return "", false
}
