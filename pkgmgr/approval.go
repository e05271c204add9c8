package pkgmgr

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr/archive"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// A Method is what a call asks of the plugin.
type Method string

// The methods of the call protocol that people invoke.
const (
	MethodHealth  Method = "health"
	MethodInspect Method = "inspect"
	MethodOperate Method = "operate"
)

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
	root   string // resolved project root or ""
	offer  []manifest.Scope // to be granted if the exchange goes well; nil for a call
	byLock bool             // the offer comes from a lock, not from a person
	passed check
}

// An Approval is the right to start one child process of one package. It is made
// by Rehash alone. It holds the executable's hashed inode open until Close.
type Approval struct {
	Call        *Call
	Manifest    manifest.Manifest
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
// running. The caller ends Decision.Call on every path.
func (h *Home) Consider(ctx context.Context, req CallRequest) (*Decision, error) {
	sel, err := h.selectPackage(ctx, req.Ref, req.Lock, lockBinds, req.Project)
	if err != nil {
		return nil, err
	}
	return h.decide(sel, req.Method, req.Project)
}

// ConsiderEnable is Consider for the exchange that enabling needs: initialize with
// the offered scopes, and health.
func (h *Home) ConsiderEnable(ctx context.Context, ref Ref, lock *Lock, offer []manifest.Scope) (*Decision, error) {
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
	}
	call, err := h.beginCall(marker)
	if err != nil {
		return nil, err
	}
	return &Decision{Call: call, home: h, sel: sel, method: m, root: root}, nil
}

// NotRevoked refuses a package that a denial covers.
func (d *Decision) NotRevoked() error {
	if err := d.home.checkDenied(d.sel.subject()); err != nil {
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
	if status == StatusEnabled || d.offer != nil && status == StatusTrusted {
		d.passed |= checkTrusted
		return nil
	}
	return d.needs(status, d.sel.blockDetail())
}

func (d *Decision) needs(status Status, detail string) error {
	return &NeedsDecision{ID: d.sel.ref.ID, Version: d.sel.version(), Package: d.sel.recorded, Status: status, Detail: detail}
}

// Granted refuses a method whose capability's scope is not granted, and an offer
// of scopes that the package does not request.
func (d *Decision) Granted() error {
	m, err := d.sel.recordedManifest(d.home)
	if err != nil {
		return err
	}
	for _, s := range d.offer {
		if !m.Requests(s) {
			return &NotRequested{ID: m.ID, Scope: string(s), Requested: m.RequestedScopes}
		}
	}
	if c := d.method.Capability(); c != "" {
		if !m.Has(c) {
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

// ProjectTrusted refuses a call on a project root that is not trusted. Health has
// no project and passes.
func (d *Decision) ProjectTrusted() error {
	if d.root != "" && d.sel.project == nil {
		return &Denied{ID: d.sel.ref.ID, Project: d.root}
	}
	d.passed |= checkProject
	return nil
}

// Rehash reads the whole package again and compares it with what was trusted. It
// is the only maker of an Approval, and refuses while another check is missing.
func (d *Decision) Rehash(ctx context.Context) (*Approval, error) {
	if d.passed != allChecks {
		return nil, fmt.Errorf("internal error: rehash before every other check passed (%04b)", d.passed)
	}
	a, err := d.home.rehash(ctx, d)
	var mismatch *Integrity
	if !errors.As(err, &mismatch) {
		return a, err
	}
	return nil, d.home.changed(ctx, d.sel, mismatch.Found)
}

func (h *Home) rehash(ctx context.Context, d *Decision) (_ *Approval, err error) {
	sel := d.sel
	mirrored := make(chan bool, 1)
	if sel.dirName != "" && sel.path != h.pluginPath(sel.dirName) {
		go func() { mirrored <- sameInodes(sel.path, h.pluginPath(sel.dirName)) }()
	} else {
		mirrored <- true
	}
	root, err := os.OpenRoot(sel.path)
	if err != nil {
		return nil, fmt.Errorf("package: %w", err)
	}
	defer root.Close()
	m, raw, err := readManifest(root, sel.path)
	if err != nil {
		<-mirrored
		return nil, d.tampered(err)
	}
	exe := path.Clean(m.Executable)
	f, err := openExecutable(root, exe, sel.path)
	if err != nil {
		<-mirrored
		return nil, d.tampered(err)
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	tree, err := archive.HashDir(ctx, root)
	same := <-mirrored
	if err != nil {
		return nil, d.tampered(err)
	}
	found, err := tree.Package()
	if err != nil {
		return nil, err
	}
	if found == sel.recorded && !same {
		// The store's tree is intact and the default directory is another tree.
		if found, err = hashPath(ctx, h.pluginPath(sel.dirName)); err != nil {
			return nil, d.tampered(err)
		}
	}
	if found != sel.recorded {
		return nil, &Integrity{What: "package digest", Expected: sel.recorded, Found: found, Where: sel.path}
	}
	// What was parsed and what will be executed are what was hashed.
	if !hashedAs(tree, manifest.FileName, raw) || !sameFile(root, exe, f) {
		return nil, &Integrity{What: "package digest", Expected: sel.recorded, Found: "", Where: sel.path}
	}
	a := &Approval{
		Call: d.Call, Manifest: m, Package: found, Fingerprint: sel.fingerprint(),
		Grants: d.sel.grants(), Dir: sel.path, Path: filepath.Join(sel.path, filepath.FromSlash(exe)), Executable: f,
		ProjectRoot: d.root, decision: d,
	}
	if d.offer != nil {
		a.Grants = d.offer
	}
	if a.Grants == nil {
		a.Grants = []manifest.Scope{}
	}
	if sel.project != nil {
		a.ProjectID = sel.project.ID
	}
	return a, nil
}

// tampered turns a rule that a trusted package suddenly breaks into a mismatch:
// its files are not the reviewed ones.
func (d *Decision) tampered(err error) error {
	var malformed *Malformed
	var refused *archive.Refusal
	if errors.As(err, &malformed) || errors.As(err, &refused) {
		return errors.Join(&Integrity{What: "package digest", Expected: d.sel.recorded, Where: d.sel.path}, err)
	}
	return err
}

func hashedAs(tree *archive.Tree, name string, content []byte) bool {
	want := digest.Of(content).Hex()
	return slices.ContainsFunc(tree.Files, func(f digest.File) bool { return f.Path == name && f.SHA256 == want })
}

func sameFile(root *os.Root, name string, f *os.File) bool {
	opened, err1 := f.Stat()
	named, err2 := root.Lstat(name)
	return err1 == nil && err2 == nil && os.SameFile(opened, named)
}

// Recheck reads the decisions again, right before an operation's request is sent:
// revocation, trust, grants and project trust may have changed since the start.
func (a *Approval) Recheck(ctx context.Context) error {
	d := a.decision
	sel, h := d.sel, d.home
	fresh := &selection{ref: sel.ref, lock: sel.lock, locked: sel.locked, recorded: sel.recorded, install: sel.install}
	err := h.state.View(ctx, func(tx *state.Tx) error { return fresh.load(tx, d.root) })
	if err != nil {
		return err
	}
	again := &Decision{Call: d.Call, home: h, sel: fresh, method: d.method, root: d.root, offer: d.offer}
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
