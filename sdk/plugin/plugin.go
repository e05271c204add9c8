// Package plugin is what the author of a call-protocol plugin imports: the
// manifest, the handler interfaces, and the loop that speaks
// switchyard.plugin/v1 over standard input and output (docs/protocol-call.md).
//
// A plugin is a program that the host starts anew for every call. The host
// sends initialize, one more method, and closes standard input. Main, or Serve
// for tests, does everything but the work itself: it reads requests strictly,
// keeps the plugin within the scopes that were granted, turns panics and
// invalid results into protocol errors, and writes nothing but the protocol to
// standard output.
//
//	//go:embed plugin.json
//	var manifestJSON []byte
//
//	func main() { plugin.Main(plugin.MustParseManifest(manifestJSON), handler{}) }
//
// The package refuses to be a host: it starts no plugin, trusts nothing and
// stores nothing. It links the standard library and this module's
// schemas/manifest, and nothing else. Package plugintest tests a finished
// plugin against the protocol.
package plugin

import "github.com/switchyard-plugins/switchyard/schemas/manifest"

// The manifest and its vocabulary. Manifest.Validate lists every broken rule.
type (
	Manifest   = manifest.Manifest
	Identity   = manifest.Identity
	Capability = manifest.Capability
	Scope      = manifest.Scope
)

// Capabilities, as a manifest declares them.
const (
	CapabilityInspect = manifest.CapabilityInspect // the plugin implements Inspector
	CapabilityOperate = manifest.CapabilityOperate // the plugin implements Operator
)

// Scopes, as a manifest requests and a host grants them.
const (
	ScopeMetadataRead = manifest.ScopeMetadataRead // project id and display name; needed for inspect
	ScopeFilesRead    = manifest.ScopeFilesRead    // the project's root path
	ScopeOperate      = manifest.ScopeOperate      // needed for operate
)

// The identifiers of this protocol version. They are compared exactly.
const (
	Protocol        = manifest.Protocol
	ManifestVersion = manifest.SchemaVersion
	ManifestFile    = manifest.FileName
)

// The methods that a host can call.
const (
	MethodInitialize = "initialize"
	MethodHealth     = "plugin.health"
	MethodInspect    = "project.inspect"
	MethodOperate    = "project.operate"
)

// EnvProtocol is the environment variable in which a host names the protocol it
// is about to speak.
const EnvProtocol = "SWITCHYARD_PLUGIN_PROTOCOL"

// Limits of a message.
const (
	MaxMessageBytes = 1 << 20 // one request or response, without its line feed
	MaxErrorBytes   = 1024    // the message of an error
)
