package wire

import (
	"errors"
	"fmt"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/internal/strict"
)

// A Fault is why a frame, an envelope or a body is refused. Its Message quotes no
// value, so that it may be sent to the peer.
type Fault struct {
	Code    Code
	Path    string // JSON Pointer in the body; "" if it is not in one
	Offset  int    // bytes before the fault, in the frame or the body
	Message string
}

func (f *Fault) Error() string {
	if f.Path != "" {
		return f.Path + " " + f.Message
	}
	return f.Message
}

// Fatal reports whether the fault ends the connection.
func (f *Fault) Fatal() bool { return f.Code.Fatal() }

func faultf(code Code, at int, format string, args ...any) *Fault {
	return &Fault{Code: code, Offset: at, Message: fmt.Sprintf(format, args...)}
}

// asFault turns an error of the strict reader into a Fault.
func asFault(err error) *Fault {
	var e *strict.Error
	if errors.As(err, &e) {
		return &Fault{Code: Code(e.Code), Offset: e.Offset, Message: fmt.Sprintf("%s (byte %d)", e.Message, e.Offset)}
	}
	return &Fault{Code: CodeJSONSyntax, Message: err.Error()}
}
