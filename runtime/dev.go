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
	installed, err := h.Home.Install(ctx, source, pkgmgr.InstallOptions{Default: pkgmgr.DefaultReplace})
	if err != nil {
		return nil, nil, err
	}
	if h.Denials != nil {
		if err := h.Denials.NotRevoked(installed.Install); err != nil {
			return nil, installed, err
		}
	}
	ref := pkgmgr.Ref{ID: installed.ID}
	if _, err := h.Home.Trust(ctx, ref, nil, installed.Package); err != nil {
		return nil, installed, err
	}
	m, err := pkgmgr.ParseManifest(installed.ManifestJSON)
	if err != nil {
		return nil, installed, err
	}
	if _, err := h.Enable(ctx, ref, nil, m.RequestedScopes); err != nil {
		return nil, installed, err
	}
	if req.Project != "" {
		if _, _, err := h.Home.TrustProject(ctx, req.Project); err != nil {
			return nil, installed, err
		}
	}
	req.Ref, req.Lock, req.Dev = ref, nil, true
	result, err := h.Run(ctx, req)
	return result, installed, err
}
