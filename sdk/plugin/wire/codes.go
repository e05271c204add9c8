package wire

// A Code is the stable name of an error.
type Code string

// The codes of an error frame.
const (
	CodeUnsupportedProtocol    Code = "unsupported_protocol"
	CodeMissingRequiredFeature Code = "missing_required_feature"
	CodeIdentityMismatch       Code = "identity.mismatch"

	CodeFrameInvalid      Code = "frame.invalid"
	CodeFrameTooLarge     Code = "frame.too_large"
	CodeEnvelopeInvalid   Code = "envelope.invalid"
	CodeSequenceViolation Code = "sequence.violation"
	CodeStateViolation    Code = "state.violation"
	CodeJSONSyntax        Code = "json.syntax"
	CodeJSONDuplicateName Code = "json.duplicate_name"
	CodeJSONUnicode       Code = "json.invalid_unicode"
	CodeJSONLimit         Code = "json.limit"
	CodeJSONNumber        Code = "json.number"

	CodeFlowControlViolation Code = "flow_control_violation"

	CodeInvalidArgument             Code = "invalid_argument"
	CodeSchemaMismatch              Code = "schema.mismatch"
	CodeSchemaUnknownMember         Code = "schema.unknown_member"
	CodeUnknownOperation            Code = "unknown_operation"
	CodeUnsupportedOperationVersion Code = "unsupported_operation_version"
	CodeDeprecatedSunset            Code = "deprecated.sunset"

	CodePermissionDenied   Code = "permission_denied"
	CodeGrantExpired       Code = "grant.expired"
	CodeUntrusted          Code = "untrusted"
	CodeFingerprintChanged Code = "fingerprint.changed"
	CodeRevoked            Code = "revoked"
	CodeProjectUntrusted   Code = "project.untrusted"
	CodePayloadClassDenied Code = "payload_class.denied"

	CodeFailedPrecondition Code = "failed_precondition"
	CodeNotFound           Code = "not_found"
	CodeAlreadyExists      Code = "already_exists"
	CodeConflict           Code = "conflict"

	CodeResourceExhausted Code = "resource_exhausted"
	CodeUnavailable       Code = "unavailable"
	CodeDeadlineExceeded  Code = "deadline_exceeded"
	CodeSecretUnresolved  Code = "secret.unresolved"

	CodePluginCrashed   Code = "plugin.crashed"
	CodePluginTimeout   Code = "plugin.timeout"
	CodePluginMalformed Code = "plugin.malformed"
	CodeInternal        Code = "internal"
)

// A Blame says whose fault an error is.
type Blame string

// The domains of blame.
const (
	BlameCaller      Blame = "caller"
	BlameHost        Blame = "host"
	BlamePlugin      Blame = "plugin"
	BlameTransport   Blame = "transport"
	BlameEnvironment Blame = "environment"
	BlameSender      Blame = "" // in Codes only: the side that sent what is refused
)

// A Severity says how far an error reaches; fatal ends the connection.
type Severity string

// The severities.
const (
	SeverityInfo    Severity = "info"
	SeverityWarning Severity = "warning"
	SeverityError   Severity = "error"
	SeverityFatal   Severity = "fatal"
)

// Retry says whether the same request may be sent again.
type Retry string

// The answers to that.
const (
	RetryNo         Retry = "no"
	RetryYes        Retry = "yes"
	RetryIdempotent Retry = "if idempotent"
)

// A CodeRule is what the protocol says of one code.
type CodeRule struct {
	Code  Code
	Retry Retry
	Fatal bool
	Blame Blame // BlameSender where it depends on who sent what is refused
}

// Codes lists every code.
var Codes = []CodeRule{
	{CodeUnsupportedProtocol, RetryNo, true, BlamePlugin},
	{CodeMissingRequiredFeature, RetryNo, true, BlamePlugin},
	{CodeIdentityMismatch, RetryNo, true, BlamePlugin},
	{CodeFrameInvalid, RetryNo, true, BlameSender},
	{CodeFrameTooLarge, RetryNo, true, BlameSender},
	{CodeEnvelopeInvalid, RetryNo, true, BlameSender},
	{CodeSequenceViolation, RetryNo, true, BlameSender},
	{CodeStateViolation, RetryNo, true, BlameSender},
	{CodeJSONSyntax, RetryNo, true, BlameSender},
	{CodeJSONDuplicateName, RetryNo, true, BlameSender},
	{CodeJSONUnicode, RetryNo, true, BlameSender},
	{CodeJSONLimit, RetryNo, true, BlameSender},
	{CodeJSONNumber, RetryNo, true, BlameSender},
	{CodeFlowControlViolation, RetryNo, false, BlameSender},
	{CodeInvalidArgument, RetryNo, false, BlameSender},
	{CodeSchemaMismatch, RetryNo, false, BlameSender},
	{CodeSchemaUnknownMember, RetryNo, false, BlameSender},
	{CodeUnknownOperation, RetryNo, false, BlameSender},
	{CodeUnsupportedOperationVersion, RetryNo, false, BlameSender},
	{CodeDeprecatedSunset, RetryNo, false, BlameSender},
	{CodePermissionDenied, RetryNo, false, BlameHost},
	{CodeGrantExpired, RetryNo, false, BlameHost},
	{CodeUntrusted, RetryNo, false, BlameHost},
	{CodeFingerprintChanged, RetryNo, false, BlameHost},
	{CodeRevoked, RetryNo, false, BlameHost},
	{CodeProjectUntrusted, RetryNo, false, BlameHost},
	{CodePayloadClassDenied, RetryNo, false, BlameHost},
	{CodeFailedPrecondition, RetryNo, false, BlameCaller},
	{CodeNotFound, RetryNo, false, BlameCaller},
	{CodeAlreadyExists, RetryNo, false, BlameCaller},
	{CodeConflict, RetryYes, false, BlameCaller},
	{CodeResourceExhausted, RetryYes, false, BlameEnvironment},
	{CodeUnavailable, RetryYes, false, BlameEnvironment},
	{CodeDeadlineExceeded, RetryYes, false, BlameEnvironment},
	{CodeSecretUnresolved, RetryNo, false, BlameEnvironment},
	{CodePluginCrashed, RetryIdempotent, false, BlamePlugin},
	{CodePluginTimeout, RetryIdempotent, false, BlamePlugin},
	{CodePluginMalformed, RetryIdempotent, false, BlamePlugin},
	{CodeInternal, RetryNo, false, BlamePlugin},
}

// Rule returns what Codes says of c. Of a code that is none, ok is false.
func (c Code) Rule() (rule CodeRule, ok bool) {
	for _, r := range Codes {
		if r.Code == c {
			return r, true
		}
	}
	return CodeRule{Code: c, Retry: RetryNo}, false
}

// Fatal reports whether an error with this code ends the connection.
func (c Code) Fatal() bool {
	r, _ := c.Rule()
	return r.Fatal
}

// Retryable reports whether a request that failed with c may be sent again by
// what the protocol says; idempotent is what the manifest says of the operation.
func (c Code) Retryable(idempotent bool) bool {
	r, _ := c.Rule()
	return r.Retry == RetryYes || r.Retry == RetryIdempotent && idempotent
}

// Blame returns whose fault c is when sender sent what is refused for it.
func (c Code) Blame(sender Blame) Blame {
	if r, _ := c.Rule(); r.Blame != BlameSender {
		return r.Blame
	}
	return sender
}
