package pkgmgr

import (
	"context"
	"os"
	"slices"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
)

// A Method is what a call asks of the plugin.
type Method string

// The methods of the call protocol that people invoke.
const (
	MethodHealth  Method = "health"
	MethodInspect Method = "inspect"
	MethodOperate Method = "operate"
)

// MethodRequest asks a session package for one of its operations.
const MethodRequest Method = "request"

// Capability returns the capability that the method needs, or "".
func (m Method) Capability() manifest.Capability {
	switch m {
	case MethodInspect:
		return manifest.CapabilityInspect
	case MethodOperate:
		return manifest.CapabilityOperate
	}
	return ""
}

// CallRequest says what is to be called, and on what.
type CallRequest struct {
	Ref     Ref
	Lock    *Lock
	Method  Method
	Project string // resolved project root; "" for health
	// Capability and Operation name what a MethodRequest asks for; both may be "" for a
	// session of several requests, each of which Approval.Offers is asked about.
	Capability, Operation string
}

// The checks that stand before an Approval.
type check int

const (
	checkNotRevoked check = 1 << iota
	checkTrusted
	checkGranted
	checkProject

	allChecks = checkNotRevoked | checkTrusted | checkGranted | checkProject
)

// A Decision is a call under consideration. Its checks are made one by one, in the
// order in which the caller makes them; Rehash refuses while one is missing.
type Decision struct {
	Call   *Call // marked as running; the owner of the Decision ends it
	home   *Home
	sel    *selection
	method Method
	asked  [2]string        // capability and operation of a MethodRequest, or ""
	root   string           // resolved project root or ""
	offer  []manifest.Scope // to be granted if the exchange goes well; nil for a call
	byLock bool             // the offer comes from a lock, not from a person
	passed check
}

// An Approval is the right to start one child process of one package. It is made
// by Rehash alone. It holds the executable's hashed inode open until Close.
type Approval struct {
	Call        *Call
	Manifest    Manifest
	Package     digest.Digest
	Fingerprint digest.Digest
	Grants      []manifest.Scope // exactly what initialize will offer
	Dir         string           // the package directory, absolute
	Path        string           // the executable's path below Dir, absolute
	Executable  *os.File         // the inode that was hashed
	ProjectID   string           // "" without a project
	ProjectRoot string           // resolved; "" without a project
	decision    *Decision
}

// Close releases the executable. It does not end the Call.
func (a *Approval) Close() { a.Executable.Close() }

// Consider selects the package that a request names and marks the call as
// running. An id that more than one directory claims is *Claimed. The caller ends Decision.Call on every path.
func (h *Home) Consider(ctx context.Context, req CallRequest) (*Decision, error) {
	sel, err := h.selectPackage(ctx, req.Ref, req.Lock, lockBinds, req.Project)
	if err != nil {
		return nil, err
	}
	if err := h.uncontested(sel); err != nil {
		return nil, err
	}
	d, err := h.decide(sel, req.Method, req.Project)
	if d != nil {
		d.asked = [2]string{req.Capability, req.Operation}
	}
	return d, err
}

// ConsiderEnable is Consider for the exchange that enabling needs: initialize with
// the offered scopes, and health.
func (h *Home) ConsiderEnable(ctx context.Context, ref Ref, lock *Lock, offer []manifest.Scope) (*Decision, error) {
	if err := h.onlyClaim(ref.ID); err != nil {
		return nil, err
	}
	sel, err := h.selectPackage(ctx, ref, lock, lockGuides, "")
	if err != nil {
		return nil, err
	}
	d, err := h.decide(sel, MethodHealth, "")
	if err != nil {
		return nil, err
	}
	d.offer = slices.Clone(offer)
	slices.Sort(d.offer)
	d.offer = slices.Compact(d.offer)
	if d.offer == nil {
		d.offer = []manifest.Scope{}
	}
	return d, nil
}

// ConsiderLock is ConsiderEnable for a lock's approval: the lock's reviewed digest
// stands in for a review on this machine, its grants are the offer. It never
// overrides an untrust, a disable, a change or a revocation.
func (h *Home) ConsiderLock(ctx context.Context, lock *Lock, e lockfile.Plugin) (*Decision, error) {
	if err := h.onlyClaim(e.ID); err != nil {
		return nil, err
	}
	sel, err := h.selectPackage(ctx, Ref{ID: e.ID}, lock, lockBinds, "")
	if err != nil {
		return nil, err
	}
	d, err := h.decide(sel, MethodHealth, "")
	if err != nil {
		return nil, err
	}
	d.byLock, d.offer = true, []manifest.Scope{}
	for _, s := range e.Grants {
		d.offer = append(d.offer, manifest.Scope(s))
	}
	return d, nil
}

func (h *Home) decide(sel *selection, m Method, root string) (*Decision, error) {
	marker := callMarker{PluginID: sel.ref.ID, Package: sel.recorded, Operation: m == MethodOperate}
	if in := sel.install; in != nil {
		marker.Version, marker.Archive, marker.Manifest, marker.Fingerprint = in.Version, in.Archive, in.Manifest, in.Fingerprint
		marker.Publisher = sel.subject().publisher()
	}
	call, err := h.beginCall(marker)
	if err != nil {
		return nil, err
	}
	return &Decision{Call: call, home: h, sel: sel, method: m, root: root}, nil
}

// Dir is where the package stands that is considered. An install that gets in between
// may move it: the Approval's Dir is the one that counts.
func (d *Decision) Dir() string { return d.sel.path }

// NotRevoked refuses a package that a denial covers, and, where the policy says so, a
// call while it is not known what is revoked.
func (d *Decision) NotRevoked() error {
	h, s := d.home, d.sel.subject()
	if err := h.deniedHere(s); err != nil {
		return err
	}
	lists, err := h.openLists()
	if err != nil {
		return err
	}
	defer lists.close()
	if err := h.checkListedIn(lists, s, nil); err != nil {
		return err
	}
	if err := h.allowCall(lists, d.sel.lock); err != nil {
		return err
	}
	d.passed |= checkNotRevoked
	return nil
}

// Trusted refuses a package that nobody trusts or that is not enabled.
func (d *Decision) Trusted() error {
	status := d.sel.status()
	if d.byLock {
		if len(d.sel.standing.Blocks) > 0 {
			return d.needs(status, "a lock does not override that decision")
		}
		d.passed |= checkTrusted
		return nil
	}
	if d.offer != nil {
		return d.reviewed(status)
	}
	if status == StatusEnabled {
		d.passed |= checkTrusted
		return nil
	}
	return d.needs(status, d.sel.blockDetail())
}

// reviewed refuses to grant anything to a package that no person trusts: a lock's
// approval makes it run in its project, and is nothing to build on. A person's own
// disable is no obstacle, for enabling is what takes it back.
func (d *Decision) reviewed(status Status) error {
	s := d.sel.standing
	switch {
	case s.Blocked(state.BlockChanged) != nil, s.Blocked(state.BlockUntrusted) != nil:
		return d.needs(status, d.sel.blockDetail())
	case s.Trust == nil && status == StatusEnabled:
		return d.needs(StatusUntrusted, "approved by the lock only; review and trust it first")
	case s.Trust == nil:
		return d.needs(status, "")
	}
	d.passed |= checkTrusted
	return nil
}

func (d *Decision) needs(status Status, detail string) error {
	return &NeedsDecision{ID: d.sel.ref.ID, Version: d.sel.version(), Package: d.sel.recorded, Status: status, Detail: detail}
}

// Granted refuses a method whose capability's scope is not granted, and an offer
// of scopes that the package does not request.
func (d *Decision) Granted() error {
	m, _, err := d.sel.recordedManifest(d.home)
	if err != nil {
		return err
	}
	for _, s := range d.offer {
		if slices.Contains(m.Unoffered(), s) {
			return &Unoffered{ID: m.ID, Scope: s}
		}
		if !m.Requests(s) {
			if d.byLock {
				return grantsTooMuch(d.sel.lock.Path, m, string(s))
			}
			return &NotRequested{ID: m.ID, Scope: string(s), Requested: m.RequestedScopes}
		}
	}
	if err := d.required(&m); err != nil {
		return err
	}
	if d.method == MethodRequest {
		if err := offers(&m, d.asked[0], d.asked[1]); err != nil {
			return err
		}
	}
	if c := d.method.Capability(); c != "" {
		if m.Session != nil || !m.Has(c) {
			return &NotOffered{ID: m.ID, Capability: c}
		}
		if grants := d.sel.grants(); !slices.Contains(grants, c.Requires()) {
			denied := &Denied{ID: m.ID, Scope: c.Requires()}
			if d.sel.locked != nil && !slices.Contains(d.sel.locked.Grants, string(c.Requires())) {
				denied.ByLock = d.sel.lock.Path
			}
			return denied
		}
	}
	d.passed |= checkGranted
	return nil
}

// required refuses to go on without a scope that the package cannot do without.
func (d *Decision) required(m *Manifest) error {
	granted := d.offer
	if granted == nil {
		granted = d.sel.grants()
	}
	for _, s := range m.Required() {
		switch {
		case !sessionmanifest.Scope(s).Offered():
			return &Unoffered{ID: m.ID, Scope: s}
		case slices.Contains(granted, s):
		case d.offer != nil:
			return &ScopeRequired{ID: m.ID, Scope: s, Required: m.Required(), Chosen: granted}
		default:
			denied := &Denied{ID: m.ID, Scope: s}
			if d.sel.locked != nil && !slices.Contains(d.sel.locked.Grants, string(s)) {
				denied.ByLock = d.sel.lock.Path
			}
			return denied
		}
	}
	return nil
}

// offers returns nil if the manifest has the operation; "" asks for none.
func offers(m *Manifest, capability, operation string) error {
	if m.Session == nil {
		return &WrongProtocol{ID: m.ID, Protocol: m.ProtocolVersion}
	}
	if capability == "" && operation == "" {
		return nil
	}
	if _, _, ok := m.Session.Operation(capability, operation); ok {
		return nil
	}
	missing := &NotFound{Kind: "operation", Name: capability + "/" + operation}
	for _, c := range m.Session.Capabilities {
		for _, o := range c.Operations {
			missing.Near = append(missing.Near, c.ID+"/"+o.Name)
		}
	}
	return missing
}

// Offers returns nil if the approved package has the operation.
func (a *Approval) Offers(capability, operation string) error {
	return offers(&a.Manifest, capability, operation)
}

// ProjectTrusted refuses a call on a project root that is not trusted. Health has
// no project and passes; inspect and operate must have one, a request may.
func (d *Decision) ProjectTrusted() error {
	switch {
	case d.root != "" && d.sel.project == nil:
		return &Denied{ID: d.sel.ref.ID, Project: d.root}
	case d.root == "" && d.method != MethodHealth && d.method != MethodRequest:
		return &Denied{ID: d.sel.ref.ID, Detail: string(d.method) + " needs a project directory"}
	}
	d.passed |= checkProject
	return nil
}

// Recheck reads the decisions again, right before an operation's request is sent:
// revocation, trust, grants and project trust may have changed since the start.
func (a *Approval) Recheck(ctx context.Context) error {
	d := a.decision
	sel, h := d.sel, d.home
	fresh := &selection{ref: sel.ref, lock: sel.lock, locked: sel.locked, recorded: sel.recorded, install: sel.install, manifest: sel.manifest}
	err := h.state.View(ctx, func(tx *state.Tx) error { return fresh.load(tx, d.root) })
	if err != nil {
		return err
	}
	again := &Decision{Call: d.Call, home: h, sel: fresh, method: d.method, asked: d.asked, root: d.root, offer: d.offer, byLock: d.byLock}
	for _, step := range []func() error{again.NotRevoked, again.Trusted, again.Granted, again.ProjectTrusted} {
		if err := step(); err != nil {
			return err
		}
	}
	if now := fresh.grants(); d.offer == nil && !slices.Equal(now, a.Grants) {
		return &Denied{ID: sel.ref.ID, Detail: "the grants were changed while the plugin was starting"}
	}
	return nil
}

// NotRevoked returns a *Revoked if a denial covers the approved package by now.
func (a *Approval) NotRevoked() error { return a.decision.NotRevoked() }
