package plugin

import (
	"errors"
	"fmt"
	"strings"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/internal/strict"
)

// A Code is the code of a protocol error.
type Code int

// The codes of switchyard.plugin/v1. A handler returns errors with
// CodeApplication, CodeBadParams and CodeNotGranted; Serve makes the others.
const (
	CodeMalformed        Code = -32700 // the request is not a request; answered with id null
	CodeUnknownMethod    Code = -32601
	CodeBadParams        Code = -32602
	CodeInternal         Code = -32603 // the handler panicked or returned something invalid
	CodeApplication      Code = -32000 // the plugin's own refusal or failure
	CodeProtocolMismatch Code = -32001
	CodeState            Code = -32002 // not initialized yet, or initialized already
	CodeNotGranted       Code = -32003 // capability not declared or scope not granted
)

// String says in words what c means.
func (c Code) String() string {
	switch c {
	case CodeMalformed:
		return "malformed request"
	case CodeUnknownMethod:
		return "unknown method"
	case CodeBadParams:
		return "bad parameters"
	case CodeInternal:
		return "the handler failed"
	case CodeApplication:
		return "the plugin reported an error"
	case CodeProtocolMismatch:
		return "protocol mismatch"
	case CodeState:
		return "not initialized, or initialized already"
	case CodeNotGranted:
		return "capability or scope not granted"
	}
	return "unknown error code"
}

// An Error is the error member of a response.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"` // at most MaxErrorBytes on the wire
}

func (e *Error) Error() string { return e.Message }

// Errorf returns an application error.
func Errorf(format string, args ...any) *Error {
	return &Error{Code: CodeApplication, Message: fmt.Sprintf(format, args...)}
}

// BadInput returns the error for an input that an action cannot take.
func BadInput(format string, args ...any) *Error {
	return &Error{Code: CodeBadParams, Message: fmt.Sprintf(format, args...)}
}

// UnknownAction returns the error for an action that the plugin does not offer.
func UnknownAction(action string) *Error {
	return BadInput("unknown action %s", strict.Quote(action))
}

// NotGranted returns the error for work that needs a scope which was withheld.
func NotGranted(s Scope) *Error {
	return &Error{Code: CodeNotGranted, Message: fmt.Sprintf("the scope %s is not granted", s)}
}

// onWire returns what is sent for an error that a handler returned. Any error
// that is not an *Error is an application error with its own text.
func onWire(err error) *Error {
	code := CodeApplication
	if own := (*Error)(nil); errors.As(err, &own) && own != nil {
		code = own.Code
	}
	switch code {
	case CodeApplication, CodeBadParams, CodeNotGranted:
		return bounded(code, err.Error())
	}
	return bounded(CodeInternal, fmt.Sprintf("the handler returned an error with the reserved code %d", code))
}

// bounded returns an error whose message is fit to be sent.
func bounded(code Code, message string) *Error {
	message = strings.TrimSpace(strict.Cut(strict.Clean(strings.TrimSpace(message)), MaxErrorBytes))
	if message == "" {
		message = code.String()
	}
	return &Error{Code: code, Message: message}
}
