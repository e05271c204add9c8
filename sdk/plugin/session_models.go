package plugin

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// The vocabulary of the session protocol.
type (
	PayloadClass     = wire.PayloadClass
	DiagnosticPolicy = wire.DiagnosticPolicy
	Retention        = wire.Retention
	EffectState      = wire.EffectState
	ExecutionState   = wire.ExecutionState
	ErrorCode        = wire.Code
)

// Effects, as Operation.Effect declares them.
const (
	EffectNone       = wire.EffectNone       // nothing outside changed
	EffectCommitted  = wire.EffectCommitted  // the change is durable
	EffectPartial    = wire.EffectPartial    // some of it is
	EffectRolledBack = wire.EffectRolledBack // it was, and is undone
	EffectUnknown    = wire.EffectUnknown    // cannot tell; the operation never runs again by itself
)

// The error codes that handlers use most. Every code of wire.Codes may be used that
// does not end the connection.
const (
	InvalidArgument    = wire.CodeInvalidArgument
	PermissionDenied   = wire.CodePermissionDenied
	FailedPrecondition = wire.CodeFailedPrecondition
	NotFound           = wire.CodeNotFound
	AlreadyExists      = wire.CodeAlreadyExists
	Conflict           = wire.CodeConflict
	ResourceExhausted  = wire.CodeResourceExhausted
	Unavailable        = wire.CodeUnavailable
	DeadlineExceeded   = wire.CodeDeadlineExceeded
	SecretUnresolved   = wire.CodeSecretUnresolved
	Internal           = wire.CodeInternal
)

// OperationContext is what the host says of one attempt at an operation.
type OperationContext struct {
	RequestID          string
	OperationID        string
	IdempotencyKey     string // "" if there is none
	Attempt            int64
	DeadlineUTC        time.Time // the zero value if there is none
	TraceID            string    // "" if there is none
	CapabilityID       string
	OperationName      string
	OperationVersion   string
	PayloadClass       PayloadClass
	PermissionsGrantID string // "" if there is none
	DiagnosticPolicy   DiagnosticPolicy
	Retention          Retention
}

// ProgressUpdate tells how far an operation is.
type ProgressUpdate struct {
	Message          string
	PercentCompleted *float64 // 0 to 100; nil if it is not known
	Current          *int64   // nil if it is not known
	Total            *int64   // nil if it is not known
}

// HealthReport says how the plugin is.
type HealthReport struct {
	Status       HealthStatus
	UpdatedAtUTC time.Time // the zero value is the time of the report
	Message      string    // "" for none
}

// SettingsProblem says what is wrong with the settings at one place. The message
// quotes no value.
type SettingsProblem struct {
	Path    string // JSON Pointer
	Message string
}

// Grant is one permission that the user gave.
type Grant struct {
	PermissionsGrantID string
	PermissionID       string
	Scope              string
	ExpiresAtUTC       time.Time // the zero value if it does not expire
}

// Limits are what the host holds the plugin to.
type Limits struct {
	RequestTimeoutMs    int64
	HeartbeatIntervalMs int64
	MaxInFlight         int64
}

// OperationReceipt is the durable record of one operation: ids, digests, counts and
// states, never data.
type OperationReceipt = wire.Receipt

// A PluginError is an error that an operation ends with. Its message and details go
// to the host and into logs: they must hold nothing private.
type PluginError struct {
	Code      ErrorCode
	Message   string
	Retryable bool
	Effect    EffectState     // "" leaves what Operation.Effect declared
	Details   json.RawMessage // an object, or nil
}

func (e *PluginError) Error() string { return string(e.Code) + ": " + e.Message }

// NewPluginError returns an error that is retryable if its code is.
func NewPluginError(code ErrorCode, format string, args ...any) *PluginError {
	return &PluginError{Code: code, Message: fmt.Sprintf(format, args...), Retryable: code.Retryable(false)}
}

// A SettingsError is what a settings validator returns for settings that the plugin
// cannot work with.
type SettingsError struct{ Problems []SettingsProblem }

func (e *SettingsError) Error() string {
	if len(e.Problems) == 0 {
		return "the settings are not valid"
	}
	text := e.Problems[0].Path + " " + e.Problems[0].Message
	if more := len(e.Problems) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// FormatTime writes a time as the session protocol does.
func FormatTime(t time.Time) string { return wire.FormatTime(t) }
