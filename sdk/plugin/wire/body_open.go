package wire

import (
	"encoding/json"
	"time"
)

// Hello opens a connection. Its shape is the same in every version.
type Hello struct {
	HostVersion   string
	Protocol      VersionRange
	Requires      []Feature // without which the host goes no further
	Supports      []Feature // all that the host knows beside those
	Codecs        []string
	MaxFrameBytes int64
}

// CodecJSON is the codec that every side has.
const CodecJSON = "json"

// Type is TypeHello.
func (*Hello) Type() MessageType { return TypeHello }

// AppendJSON implements Body.
func (b *Hello) AppendJSON(dst []byte) []byte {
	w := begin(dst)
	w.string("hostVersion", b.HostVersion)
	w.name("protocol")
	w.out = b.Protocol.append(w.out)
	stringList(&w, "requires", b.Requires)
	stringList(&w, "supports", b.Supports)
	stringList(&w, "codecs", b.Codecs)
	w.integer("maxFrameBytes", b.MaxFrameBytes)
	return w.end()
}

func (*Hello) required() []string { return helloMembers }

var helloMembers = []string{"hostVersion", "protocol", "requires", "supports", "codecs", "maxFrameBytes"}

func (b *Hello) member(d *decoder, name []byte) bool {
	switch string(name) {
	case "hostVersion":
		d.string(&b.HostVersion, 1, 128)
	case "protocol":
		d.object(&b.Protocol)
	case "requires":
		set(d, &b.Requires, d.feature)
	case "supports":
		set(d, &b.Supports, d.feature)
	case "codecs":
		set(d, &b.Codecs, func(s *string) { d.string(s, 1, 64) })
	case "maxFrameBytes":
		d.integer(&b.MaxFrameBytes, MinMaxFrame, MaxMaxFrame)
	default:
		return false
	}
	return true
}

func (r *VersionRange) append(dst []byte) []byte {
	w := begin(dst)
	w.version("min", r.Min)
	w.version("max", r.Max)
	return w.end()
}

func (*VersionRange) required() []string { return rangeMembers }

var rangeMembers = []string{"min", "max"}

func (r *VersionRange) member(d *decoder, name []byte) bool {
	switch string(name) {
	case "min":
		d.version(&r.Min)
	case "max":
		d.version(&r.Max)
	default:
		return false
	}
	return true
}

// HelloAck is the plugin's choice.
type HelloAck struct {
	ProtocolVersion Version
	EnabledFeatures []Feature
	Requires        []Feature // without which the plugin cannot keep its manifest
	Codec           string
	MaxFrameBytes   int64
	ManifestDigest  string
	Plugin          Identity
	Deprecations    []Deprecation
}

// An Identity says which package runs.
type Identity struct{ PluginID, PublisherID, PackageVersion string }

// A Deprecation says of an element of the manifest that it goes, as data.
type Deprecation struct {
	Element             string
	DeprecatedSince     string
	SunsetAfter         string
	Replacement         string // "" if there is none
	BehaviorAfterSunset string
}

// Type is TypeHelloAck.
func (*HelloAck) Type() MessageType { return TypeHelloAck }

// AppendJSON implements Body.
func (b *HelloAck) AppendJSON(dst []byte) []byte {
	w := begin(dst)
	w.version("protocolVersion", b.ProtocolVersion)
	stringList(&w, "enabledFeatures", b.EnabledFeatures)
	stringList(&w, "requires", b.Requires)
	w.string("codec", b.Codec)
	w.integer("maxFrameBytes", b.MaxFrameBytes)
	w.string("manifestDigest", b.ManifestDigest)
	w.name("plugin")
	w.out = b.Plugin.append(w.out)
	list(&w, "deprecations", b.Deprecations, func(dst []byte, d *Deprecation) []byte { return d.append(dst) })
	return w.end()
}

func (*HelloAck) required() []string { return helloAckMembers }

var helloAckMembers = []string{"protocolVersion", "enabledFeatures", "requires", "codec", "maxFrameBytes", "manifestDigest", "plugin", "deprecations"}

func (b *HelloAck) member(d *decoder, name []byte) bool {
	switch string(name) {
	case "protocolVersion":
		d.version(&b.ProtocolVersion)
	case "enabledFeatures":
		set(d, &b.EnabledFeatures, d.feature)
	case "requires":
		set(d, &b.Requires, d.feature)
	case "codec":
		d.string(&b.Codec, 1, 64)
	case "maxFrameBytes":
		d.integer(&b.MaxFrameBytes, MinMaxFrame, MaxMaxFrame)
	case "manifestDigest":
		d.digest(&b.ManifestDigest)
	case "plugin":
		d.object(&b.Plugin)
	case "deprecations":
		b.Deprecations = []Deprecation{}
		d.list(func() {
			var one Deprecation
			d.object(&one)
			b.Deprecations = append(b.Deprecations, one)
		})
	default:
		return false
	}
	return true
}

func (i *Identity) append(dst []byte) []byte {
	w := begin(dst)
	w.string("pluginId", i.PluginID)
	w.string("publisherId", i.PublisherID)
	w.string("packageVersion", i.PackageVersion)
	return w.end()
}

func (*Identity) required() []string { return identityMembers }

var identityMembers = []string{"pluginId", "publisherId", "packageVersion"}

func (i *Identity) member(d *decoder, name []byte) bool {
	switch string(name) {
	case "pluginId":
		d.string(&i.PluginID, 1, 256)
	case "publisherId":
		d.string(&i.PublisherID, 1, 256)
	case "packageVersion":
		d.string(&i.PackageVersion, 1, 256)
	default:
		return false
	}
	return true
}

func (x *Deprecation) append(dst []byte) []byte {
	w := begin(dst)
	w.string("element", x.Element)
	w.string("deprecatedSince", x.DeprecatedSince)
	w.string("sunsetAfter", x.SunsetAfter)
	w.optional("replacement", x.Replacement)
	w.string("behaviorAfterSunset", x.BehaviorAfterSunset)
	return w.end()
}

func (*Deprecation) required() []string { return deprecationMembers }

var deprecationMembers = []string{"element", "deprecatedSince", "sunsetAfter", "behaviorAfterSunset"}

func (x *Deprecation) member(d *decoder, name []byte) bool {
	switch string(name) {
	case "element":
		d.string(&x.Element, 1, 256)
	case "deprecatedSince":
		d.string(&x.DeprecatedSince, 1, 256)
	case "sunsetAfter":
		d.string(&x.SunsetAfter, 1, 256)
	case "replacement":
		d.string(&x.Replacement, 1, 256)
	case "behaviorAfterSunset":
		oneOf(d, &x.BehaviorAfterSunset, afterSunset)
	default:
		return false
	}
	return true
}

var afterSunset = []string{"error"}

// Init tells a plugin under which conditions it works.
type Init struct {
	InstanceID      string
	Grants          []Grant
	Settings        json.RawMessage // an object
	SettingsDigest  string
	Limits          Limits
	AcceptedClasses []PayloadClass
}

// A Grant is one permission that the user gave.
type Grant struct {
	PermissionsGrantID string
	PermissionID       string
	Scope              string
	ExpiresAt          time.Time // the zero value: it does not expire
}

// Limits are what the host holds a plugin to.
type Limits struct {
	RequestTimeoutMs    int64
	HeartbeatIntervalMs int64
	MaxInFlight         int64
}

// Type is TypeInit.
func (*Init) Type() MessageType { return TypeInit }

// AppendJSON implements Body.
func (b *Init) AppendJSON(dst []byte) []byte {
	w := begin(dst)
	w.string("instanceId", b.InstanceID)
	list(&w, "grants", b.Grants, func(dst []byte, g *Grant) []byte { return g.append(dst) })
	w.raw("settings", b.Settings)
	w.string("settingsDigest", b.SettingsDigest)
	w.name("limits")
	w.out = b.Limits.append(w.out)
	stringList(&w, "acceptedClasses", b.AcceptedClasses)
	return w.end()
}

func (*Init) required() []string { return initMembers }

var initMembers = []string{"instanceId", "grants", "settings", "settingsDigest", "limits", "acceptedClasses"}

func (b *Init) member(d *decoder, name []byte) bool {
	switch string(name) {
	case "instanceId":
		d.string(&b.InstanceID, 1, 128)
	case "grants":
		b.Grants = []Grant{}
		d.list(func() {
			var one Grant
			d.object(&one)
			b.Grants = append(b.Grants, one)
		})
	case "settings":
		d.rawObject(&b.Settings)
	case "settingsDigest":
		d.digest(&b.SettingsDigest)
	case "limits":
		d.object(&b.Limits)
	case "acceptedClasses":
		set(d, &b.AcceptedClasses, func(c *PayloadClass) { oneOf(d, c, PayloadClasses) })
	default:
		return false
	}
	return true
}

func (g *Grant) append(dst []byte) []byte {
	w := begin(dst)
	w.string("permissionsGrantId", g.PermissionsGrantID)
	w.string("permissionId", g.PermissionID)
	w.string("scope", g.Scope)
	if !g.ExpiresAt.IsZero() {
		w.time("expiresAtUtc", g.ExpiresAt)
	}
	return w.end()
}

func (*Grant) required() []string { return grantMembers }

var grantMembers = []string{"permissionsGrantId", "permissionId", "scope"}

func (g *Grant) member(d *decoder, name []byte) bool {
	switch string(name) {
	case "permissionsGrantId":
		d.string(&g.PermissionsGrantID, 1, 128)
	case "permissionId":
		d.token(&g.PermissionID)
	case "scope":
		d.token(&g.Scope)
	case "expiresAtUtc":
		d.time(&g.ExpiresAt)
	default:
		return false
	}
	return true
}

func (l *Limits) append(dst []byte) []byte {
	w := begin(dst)
	w.integer("requestTimeoutMs", l.RequestTimeoutMs)
	w.integer("heartbeatIntervalMs", l.HeartbeatIntervalMs)
	w.integer("maxInFlight", l.MaxInFlight)
	return w.end()
}

func (*Limits) required() []string { return limitsMembers }

var limitsMembers = []string{"requestTimeoutMs", "heartbeatIntervalMs", "maxInFlight"}

func (l *Limits) member(d *decoder, name []byte) bool {
	switch string(name) {
	case "requestTimeoutMs":
		d.integer(&l.RequestTimeoutMs, 1, MaxSafeInteger)
	case "heartbeatIntervalMs":
		d.integer(&l.HeartbeatIntervalMs, 1, MaxSafeInteger)
	case "maxInFlight":
		d.integer(&l.MaxInFlight, 1, MaxSafeInteger)
	default:
		return false
	}
	return true
}

// The states in which a plugin can begin.
const (
	InitReady    = "ready"
	InitDegraded = "degraded"
)

// InitAck says that the plugin is ready for requests, and for which.
type InitAck struct {
	Status       string // InitReady or InitDegraded
	Message      string // "" for none
	Capabilities []Capability
}

// A Capability is what a plugin offers, in the versions that it offers.
type Capability struct {
	ID, Version string
	Operations  []OperationVersion
}

// An OperationVersion names one operation of a capability.
type OperationVersion struct{ Name, OperationVersion string }

// Type is TypeInitAck.
func (*InitAck) Type() MessageType { return TypeInitAck }

// AppendJSON implements Body.
func (b *InitAck) AppendJSON(dst []byte) []byte {
	w := begin(dst)
	w.string("status", b.Status)
	w.optional("message", b.Message)
	list(&w, "capabilities", b.Capabilities, func(dst []byte, c *Capability) []byte {
		w := begin(dst)
		w.string("id", c.ID)
		w.string("version", c.Version)
		list(&w, "operations", c.Operations, func(dst []byte, o *OperationVersion) []byte {
			w := begin(dst)
			w.string("name", o.Name)
			w.string("operationVersion", o.OperationVersion)
			return w.end()
		})
		return w.end()
	})
	return w.end()
}

func (*InitAck) required() []string { return initAckMembers }

var (
	initAckMembers = []string{"status", "capabilities"}
	initStatuses   = []string{InitReady, InitDegraded}
)

func (b *InitAck) member(d *decoder, name []byte) bool {
	switch string(name) {
	case "status":
		oneOf(d, &b.Status, initStatuses)
	case "message":
		d.string(&b.Message, 0, MaxMessage)
	case "capabilities":
		b.Capabilities = []Capability{}
		d.list(func() {
			var one Capability
			d.object(&one)
			b.Capabilities = append(b.Capabilities, one)
		})
	default:
		return false
	}
	return true
}

func (*Capability) required() []string { return capabilityMembers }

var capabilityMembers = []string{"id", "version", "operations"}

func (c *Capability) member(d *decoder, name []byte) bool {
	switch string(name) {
	case "id":
		d.token(&c.ID)
	case "version":
		d.string(&c.Version, 1, 256)
	case "operations":
		c.Operations = []OperationVersion{}
		d.list(func() {
			var one OperationVersion
			d.object(&one)
			c.Operations = append(c.Operations, one)
		})
	default:
		return false
	}
	return true
}

func (*OperationVersion) required() []string { return operationMembers }

var operationMembers = []string{"name", "operationVersion"}

func (o *OperationVersion) member(d *decoder, name []byte) bool {
	switch string(name) {
	case "name":
		d.token(&o.Name)
	case "operationVersion":
		d.operationVersion(&o.OperationVersion)
	default:
		return false
	}
	return true
}
