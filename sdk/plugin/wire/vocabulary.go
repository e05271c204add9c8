package wire

// A PayloadClass says how far the data of a payload may be spread.
type PayloadClass string

// The payload classes, from the least sensitive on.
const (
	ClassPublic    PayloadClass = "public"
	ClassInternal  PayloadClass = "internal"
	ClassSensitive PayloadClass = "sensitive"
	ClassSecret    PayloadClass = "secret"
	ClassRegulated PayloadClass = "regulated"
)

// PayloadClasses lists them.
var PayloadClasses = []PayloadClass{ClassPublic, ClassInternal, ClassSensitive, ClassSecret, ClassRegulated}

// Bounded reports whether c needs a granted bounded.private-data.
func (c PayloadClass) Bounded() bool {
	return c == ClassSensitive || c == ClassSecret || c == ClassRegulated
}

// A DiagnosticPolicy says what a plugin may log of a request.
type DiagnosticPolicy string

// The policies.
const (
	DiagnosticSafe       DiagnosticPolicy = "safe-default"
	DiagnosticSafeHashes DiagnosticPolicy = "safe-plus-hashes"
	DiagnosticDebug      DiagnosticPolicy = "explicit-debug"
)

// DiagnosticPolicies lists them.
var DiagnosticPolicies = []DiagnosticPolicy{DiagnosticSafe, DiagnosticSafeHashes, DiagnosticDebug}

// A Retention says for how long what a request leaves behind is kept.
type Retention string

// The retentions.
const (
	RetentionNone      Retention = "none" // the receipt, without the result
	RetentionEphemeral Retention = "ephemeral"
	RetentionShort     Retention = "short"
	RetentionAudit     Retention = "audit"
)

// Retentions lists them.
var Retentions = []Retention{RetentionNone, RetentionEphemeral, RetentionShort, RetentionAudit}

// An ExecutionState says how far an operation came.
type ExecutionState string

// The execution states.
const (
	ExecutionCompleted  ExecutionState = "completed"
	ExecutionFailed     ExecutionState = "failed"
	ExecutionCancelled  ExecutionState = "cancelled"
	ExecutionInProgress ExecutionState = "in_progress"
	ExecutionAbandoned  ExecutionState = "abandoned" // its process died first
)

// ExecutionStates lists them.
var ExecutionStates = []ExecutionState{ExecutionCompleted, ExecutionFailed, ExecutionCancelled, ExecutionInProgress, ExecutionAbandoned}

// An EffectState says what an operation changed outside of its process.
type EffectState string

// The effect states.
const (
	EffectNone       EffectState = "none"
	EffectCommitted  EffectState = "committed"
	EffectPartial    EffectState = "partial"
	EffectRolledBack EffectState = "rolled_back"
	EffectUnknown    EffectState = "unknown"
)

// EffectStates lists them.
var EffectStates = []EffectState{EffectNone, EffectCommitted, EffectPartial, EffectRolledBack, EffectUnknown}

// A HealthStatus says how a plugin is.
type HealthStatus string

// The health statuses.
const (
	Healthy   HealthStatus = "healthy"
	Degraded  HealthStatus = "degraded"
	Unhealthy HealthStatus = "unhealthy"
)

// HealthStatuses lists them.
var HealthStatuses = []HealthStatus{Healthy, Degraded, Unhealthy}

var (
	blames     = []Blame{BlameCaller, BlameHost, BlamePlugin, BlameTransport, BlameEnvironment}
	severities = []Severity{SeverityInfo, SeverityWarning, SeverityError, SeverityFatal}
)

// token reads a name as manifests use them: ^[a-z][a-z0-9._-]{1,63}$.
func (d *decoder) token(p *string) { matching(d, p, "a name as catalog.index", isToken) }

func isToken(t []byte) bool {
	if len(t) < 2 || len(t) > 64 || t[0] < 'a' || t[0] > 'z' {
		return false
	}
	for _, c := range t {
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

func (d *decoder) feature(p *Feature) { matching(d, p, "a name as cancel.v1", isToken) }

// operationVersion reads a version as text: it is compared, never ordered.
func (d *decoder) operationVersion(p *string) {
	matching(d, p, `a version as "1.0"`, func(t []byte) bool {
		_, ok := parseVersion(t)
		return ok
	})
}

// digest reads "sha256:" and 64 lower-case hexadecimal digits.
func (d *decoder) digest(p *string) {
	matching(d, p, `"sha256:" and 64 lower-case hexadecimal digits`, IsDigest)
}

// IsDigest reports whether t is a digest as the protocol writes one.
func IsDigest(t []byte) bool {
	const prefix = "sha256:"
	if len(t) != len(prefix)+64 || string(t[:len(prefix)]) != prefix {
		return false
	}
	for _, c := range t[len(prefix):] {
		if nibbles[c] == 0 || 'A' <= c && c <= 'F' {
			return false
		}
	}
	return true
}

// code reads an error code; the set is closed.
func (d *decoder) code(p *Code) {
	t, is := d.text()
	if !is {
		return
	}
	for i := range Codes {
		if string(Codes[i].Code) == string(t) {
			*p = Codes[i].Code
			return
		}
	}
	d.mismatch("must be an error code of the protocol")
}
