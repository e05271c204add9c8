package runtime

import (
	"context"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
)

// Dev is the author's loop: it approves exactly what stands in the source now, with
// every scope that it requests, and performs one call. The Host's Home must be a
// throw-away directory: nothing that Dev approves may reach a real one. What the
// Host's Denials cover is refused before anything of it runs.
func (h *Host) Dev(ctx context.Context, source string, req Request) (*Result, *pkgmgr.Installed, error) {
	installed, ref, err := h.approveSource(ctx, source, req.Project)
	if err != nil {
		return nil, installed, err
	}
	req.Ref, req.Lock, req.Dev = ref, nil, true
	result, err := h.Run(ctx, req)
	return result, installed, err
}

// DevSession is Dev for a session package: use asks it for operations, as in RunSession.
func (h *Host) DevSession(ctx context.Context, source string, req SessionRequest, use func(context.Context, *Session) error) (*Ended, *pkgmgr.Installed, error) {
	if err := req.check(); err != nil {
		return nil, nil, err
	}
	installed, ref, err := h.approveSource(ctx, source, req.Project)
	if err != nil {
		return nil, installed, err
	}
	req.Ref, req.Lock, req.Dev = ref, nil, true
	ended, err := h.RunSession(ctx, req, use)
	return ended, installed, err
}

// approveSource installs a source and approves it as it is.
func (h *Host) approveSource(ctx context.Context, source, project string) (*pkgmgr.Installed, pkgmgr.Ref, error) {
	installed, err := h.Home.Install(ctx, source, pkgmgr.InstallOptions{Default: pkgmgr.DefaultReplace})
	if err != nil {
		return nil, pkgmgr.Ref{}, err
	}
	ref := pkgmgr.Ref{ID: installed.ID}
	if h.Denials != nil {
		if err := h.Denials.NotRevoked(installed.Install); err != nil {
			return installed, ref, err
		}
	}
	if _, err := h.Home.Trust(ctx, ref, nil, installed.Package); err != nil {
		return installed, ref, err
	}
	m, err := pkgmgr.ParseManifest(installed.ManifestJSON)
	if err != nil {
		return installed, ref, err
	}
	if _, err := h.Enable(ctx, ref, nil, m.RequestedScopes); err != nil {
		return installed, ref, err
	}
	if project != "" {
		if _, _, err := h.Home.TrustProject(ctx, project); err != nil {
			return installed, ref, err
		}
	}
	return installed, ref, nil
}
