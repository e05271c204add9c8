package sessionmanifest

// A Scope is what a permission asks for.
type Scope string

// The scopes of permissions.
const (
	ScopeSettingsRead   Scope = "settings.read"
	ScopeSettingsWrite  Scope = "settings.write"
	ScopeFilesRead      Scope = "filesystem.read"
	ScopeFilesWrite     Scope = "filesystem.write"
	ScopeNetwork        Scope = "network.connect"
	ScopeClipboardRead  Scope = "clipboard.read"
	ScopeClipboardWrite Scope = "clipboard.write"
	ScopeUI             Scope = "ui.contribute"
	ScopeBackground     Scope = "background.run"
	ScopePrivateData    Scope = "bounded.private-data"
)

// Scopes lists every scope, in documentation order.
var Scopes = []Scope{ScopeSettingsRead, ScopeSettingsWrite, ScopeFilesRead, ScopeFilesWrite, ScopeNetwork,
	ScopeClipboardRead, ScopeClipboardWrite, ScopeUI, ScopeBackground, ScopePrivateData}

// Offered reports whether this host has a meaning for s. One that it does not offer
// cannot be granted.
func (s Scope) Offered() bool {
	switch s {
	case ScopeSettingsRead, ScopeSettingsWrite, ScopeFilesRead, ScopeFilesWrite, ScopeNetwork, ScopePrivateData:
		return true
	}
	return false
}

// Meaning says in plain words what granting s allows.
func (s Scope) Meaning() string {
	switch s {
	case ScopeSettingsRead:
		return "receive the settings that you made for it"
	case ScopeSettingsWrite:
		return "propose changes to the settings that you made for it"
	case ScopeFilesRead:
		return "receive the paths of files that you name, in order to read them"
	case ScopeFilesWrite:
		return "receive the paths of files that you name, in order to change them"
	case ScopeNetwork:
		return "connect to the destinations that it declares"
	case ScopeClipboardRead:
		return "read the clipboard"
	case ScopeClipboardWrite:
		return "change the clipboard"
	case ScopeUI:
		return "add to the host's user interface"
	case ScopeBackground:
		return "run when you asked for nothing"
	case ScopePrivateData:
		return "receive data that is sensitive, secret or regulated, of the classes that it declares"
	}
	return "unknown scope"
}

// A Class says how private data is.
type Class string

// The payload classes, least private first.
const (
	ClassPublic    Class = "public"
	ClassInternal  Class = "internal"
	ClassSensitive Class = "sensitive"
	ClassSecret    Class = "secret"
	ClassRegulated Class = "regulated"
)

// Classes lists every class; ReceiptClasses those that a receipt may have.
var (
	Classes        = []Class{ClassPublic, ClassInternal, ClassSensitive, ClassSecret, ClassRegulated}
	ReceiptClasses = Classes[:3:3]
)

// Private reports whether data of the class goes only to plugins that were granted
// ScopePrivateData: every class but public and internal, unknown ones included.
func (c Class) Private() bool { return c != ClassPublic && c != ClassInternal }

// A Feature is a token of the protocol with the minor version of 1 that has it.
type Feature struct {
	Token string
	Minor int
}

// Features lists every feature of protocol version 1, by minor version.
var Features = []Feature{
	{"health.watch.v1", 0}, {"transport.unix.v1", 0}, {"codec.cbor.v1", 0},
	{"cancel.v1", 1}, {"progress.v1", 1}, {"flow.credit.v1", 1},
	{"receipt.v1", 2}, {"receipt.signature.v1", 2}, {"heartbeat.v1", 2}, {"secrets.inject.v1", 2}, {"settings.validate.v1", 2},
}

// FeatureMinor returns the minor version of 1 that has the feature.
func FeatureMinor(token string) (minor int, known bool) {
	for _, f := range Features {
		if f.Token == token {
			return f.Minor, true
		}
	}
	return 0, false
}

// An OS is a system in the manifest's words.
type OS string

// An Architecture is one in the manifest's words.
type Architecture string

// Systems and architectures, and what Go calls each.
var (
	Systems       = []OS{"windows", "linux", "macos"}
	Architectures = []Architecture{"x64", "arm64"}
)

// GOOS returns Go's name of the system, "" if it is unknown.
func (o OS) GOOS() string {
	switch o {
	case "windows", "linux":
		return string(o)
	case "macos":
		return "darwin"
	}
	return ""
}

// GOARCH returns Go's name of the architecture, "" if it is unknown.
func (a Architecture) GOARCH() string {
	switch a {
	case "x64":
		return "amd64"
	case "arm64":
		return "arm64"
	}
	return ""
}

// Words of single members.
var (
	Schemes             = []string{"https", "wss"}
	BackgroundBehaviors = []string{"none", "on-demand", "scheduled", "continuous"}
)

// BehaviorError is the only thing that can happen after a sunset.
const BehaviorError = "error"
