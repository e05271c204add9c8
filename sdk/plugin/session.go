package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/subset"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/internal/receipts"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// SessionProtocol is what EnvProtocol says for the session protocol.
const SessionProtocol = "session/1"

// Environment variables of the session protocol.
const (
	EnvState  = "SWITCHYARD_PLUGIN_STATE"  // a private directory that outlives the process
	EnvSocket = "SWITCHYARD_PLUGIN_SOCKET" // the host's Unix socket, if frames go over one
)

// An OperationHandler does the work of one operation. Its result becomes the
// response: any value that encoding/json writes, or json.RawMessage; of a response
// stream it must be nil, for the items were its result.
//
// The context ends when the host cancels the request, its deadline passes, or the
// connection ends; context.Cause says which. A handler that stops because of that
// puts right what it left half done and returns an error that wraps ctx.Err() or
// context.Cause(ctx).
//
// An error that is a *PluginError ends the operation as it says. Any other error,
// and a panic, becomes internal with a text of the SDK's own.
type OperationHandler func(ctx context.Context, op *Operation) (result any, err error)

// A SettingsValidator returns the settings as the plugin uses them, or a
// *SettingsError. The settings have passed the manifest's schema.
type SettingsValidator func(ctx context.Context, settings json.RawMessage) (normalized any, err error)

// A SessionPlugin is a package and what does the work of its operations.
type SessionPlugin struct {
	Package *Package

	operations map[operationKey]*operationEntry
	settings   SettingsValidator
	health     func(context.Context) (HealthReport, error)
	started    func(context.Context, json.RawMessage) error

	store *receipts.Store
	wall  func() time.Time // what the clock on the wall says

	mu       sync.Mutex
	report   HealthReport
	watchers map[*connection]struct{}
}

type operationKey struct{ capability, name string }

// An operationEntry is an operation of the manifest with all that it needs.
type operationEntry struct {
	capability        string
	name, version     string
	streamIn          bool
	streamOut         bool
	idempotent        bool
	receipts          bool
	request, response *subset.Schema
	handler           OperationHandler
	slow              atomic.Int32 // calls that are not tried on the reading goroutine
}

// NewSessionPlugin returns a plugin without handlers. Receipts are kept below the
// directory that SWITCHYARD_PLUGIN_STATE names.
func NewSessionPlugin(pkg *Package) *SessionPlugin {
	p := &SessionPlugin{Package: pkg, operations: map[operationKey]*operationEntry{}, wall: time.Now, watchers: map[*connection]struct{}{}}
	p.report = HealthReport{Status: Healthy, UpdatedAtUTC: time.Now()}
	if state := os.Getenv(EnvState); state != "" {
		p.store = receipts.Open(state)
	}
	for _, c := range pkg.Manifest.Capabilities {
		for _, o := range c.Operations {
			p.operations[operationKey{c.ID, o.Name}] = &operationEntry{
				capability: c.ID, name: o.Name, version: o.OperationVersion,
				streamIn: o.Streaming.Request, streamOut: o.Streaming.Response,
				idempotent: o.Idempotent, receipts: o.HasReceipts(),
				request: pkg.schemas[o.RequestSchema.URI], response: pkg.schemas[o.ResponseSchema.URI],
			}
		}
	}
	return p
}

// Handle sets the handler of an operation. One that the manifest does not declare is
// never called. A second handler for one operation is a fault of the program, and
// Handle panics.
func (p *SessionPlugin) Handle(capabilityID, operationName string, h OperationHandler) {
	e := p.operations[operationKey{capabilityID, operationName}]
	if e == nil {
		return
	}
	if e.handler != nil {
		panic(fmt.Sprintf("plugin: %s/%s has a handler already", capabilityID, operationName))
	}
	e.handler = h
}

// Settings sets the plugin's own check of settings, which comes after that of the
// manifest's schema.
func (p *SessionPlugin) Settings(v SettingsValidator) { p.settings = v }

// Health sets what answers a health check. Without it the last SetHealth does.
func (p *SessionPlugin) Health(h func(ctx context.Context) (HealthReport, error)) { p.health = h }

// Started sets what is done once the settings are known and before the first
// request. An error refuses the session.
func (p *SessionPlugin) Started(f func(ctx context.Context, settings json.RawMessage) error) {
	p.started = f
}

// SetHealth says how the plugin is now, and tells hosts that watch. It may be called
// at any time.
func (p *SessionPlugin) SetHealth(status HealthStatus, message string) {
	p.mu.Lock()
	if p.report.Status == status && p.report.Message == message {
		p.mu.Unlock()
		return
	}
	p.report = HealthReport{Status: status, UpdatedAtUTC: time.Now(), Message: message}
	watchers := make([]*connection, 0, len(p.watchers))
	for c := range p.watchers {
		watchers = append(watchers, c)
	}
	report := p.report
	p.mu.Unlock()
	for _, c := range watchers {
		c.healthChanged(report)
	}
}

// Check reports, as an error, an operation of the manifest that has no handler.
func (p *SessionPlugin) Check() error {
	for _, c := range p.Package.Manifest.Capabilities {
		for _, o := range c.Operations {
			if p.operations[operationKey{c.ID, o.Name}].handler == nil {
				return fmt.Errorf("the manifest declares %s/%s, and it has no handler", c.ID, o.Name)
			}
		}
	}
	return nil
}

// currentHealth asks the plugin how it is.
func (p *SessionPlugin) currentHealth(ctx context.Context) HealthReport {
	if p.health == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.report
	}
	report, err := guarded(func() (HealthReport, error) { return p.health(ctx) })
	if err != nil {
		logf("the health handler failed")
		return HealthReport{Status: Unhealthy, UpdatedAtUTC: time.Now(), Message: "the plugin's own check of its health failed"}
	}
	return report
}

func wireHealth(h HealthReport) *wire.HealthReport {
	status := wire.HealthStatus(h.Status)
	switch status {
	case wire.Healthy, wire.Degraded, wire.Unhealthy:
	default:
		status = wire.Unhealthy
	}
	return &wire.HealthReport{Status: status, Message: shortened(h.Message), UpdatedAt: moment(h.UpdatedAtUTC)}
}
