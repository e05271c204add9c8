package commands

import (
	"errors"
	"time"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// packageData is one package as list and show print it.
type packageData struct {
	ID              string        `json:"id" doc:"The plugin's id; of a broken package the name of its directory."`
	Name            string        `json:"name" doc:"The name that the plugin gives itself."`
	Version         string        `json:"version" doc:"The package's version."`
	Status          string        `json:"status" doc:"Where it stands." enum:"broken|revoked|changed|untrusted|disabled|enabled"`
	Default         bool          `json:"default" doc:"Whether it is the default version of its id."`
	Locked          bool          `json:"locked" doc:"Whether it is what this project's lock names."`
	Package         digest.Digest `json:"package" doc:"The package digest of the files as they are now."`
	Recorded        digest.Digest `json:"recorded" doc:"The package digest that was installed or last trusted."`
	Fingerprint     digest.Digest `json:"fingerprint" doc:"The digest of manifest and executable."`
	RequestedScopes []string      `json:"requestedScopes" doc:"The scopes that the manifest asks for."`
	GrantedScopes   []string      `json:"grantedScopes" doc:"The scopes that hold."`
	GrantedByLock   bool          `json:"grantedByLock" doc:"Whether the grants come from this project's lock."`
	Health          *healthData   `json:"health" doc:"The outcome of the last call, or null."`
	Revocation      *denialData   `json:"revocation" doc:"What denies the package, or null."`
	Error           string        `json:"error" doc:"What is wrong with a broken package, else empty."`
	Path            string        `json:"path" doc:"Where its files are."`
	Source          string        `json:"source" doc:"Where it was installed from, empty where that is not known."`
	InstalledAt     time.Time     `json:"installedAt,omitzero" doc:"When it was installed."`
}

type healthData struct {
	Status  string    `json:"status" doc:"healthy, degraded or unhealthy."`
	Code    string    `json:"code" doc:"The fault's code, empty where there was none."`
	Message string    `json:"message" doc:"What the plugin or the host said about it."`
	At      time.Time `json:"at" doc:"When the call ended."`
}

type denialData struct {
	Subject string    `json:"subject" doc:"What is denied, as revoke takes it."`
	Reason  string    `json:"reason" doc:"Why."`
	At      time.Time `json:"at,omitzero" doc:"Since when."`
}

func newPackageData(i pkgmgr.Info) packageData {
	d := packageData{
		ID: i.ID, Name: i.Name, Version: i.Version, Status: string(i.Status), Default: i.Default, Locked: i.Locked,
		Package: i.Package, Recorded: i.Recorded, Fingerprint: i.Fingerprint,
		RequestedScopes: words(i.Requested), GrantedScopes: words(i.Granted), GrantedByLock: i.ByLock,
		Health: newHealthData(i.Health), Path: i.Path, Source: i.Source, InstalledAt: i.InstalledAt,
	}
	if errors.As(i.Err, new(*pkgmgr.Claimed)) {
		d.Default = false // which of them it would be is what nobody can say
	}
	if i.Err != nil {
		d.Error = i.Err.Error()
	}
	if i.Denial != nil {
		denial := newDenialData(*i.Denial)
		d.Revocation = &denial
	}
	return d
}

func newHealthData(h *state.Health) *healthData {
	if h == nil {
		return nil
	}
	return &healthData{string(h.Status), h.Code, h.Message, h.At}
}

func newDenialData(d pkgmgr.Denial) denialData { return denialData{d.Subject(), d.Reason, d.At} }

// words turns scopes, capabilities and the like into plain strings.
func words[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}
