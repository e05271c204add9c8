package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/switchyard-plugins/switchyard/runtime/process/redact"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// A Fault is what a plugin did wrong, with its facts. It has ended the session, or, as
// the error of a Call, that request alone. Its texts are valid UTF-8, redacted and
// bounded, and not escaped: that is for whoever displays them, once.
type Fault struct {
	// Code is plugin.malformed, plugin.crashed (the connection ended), plugin.timeout (no
	// answer to hello or init), unavailable (no answer to heartbeats), or that of the
	// negotiation: unsupported_protocol, missing_required_feature, identity.mismatch. Of
	// an error frame that ended the session it is the frame's.
	Code    wire.Code
	Rule    wire.Code        // the rule that was broken, as frame.invalid or schema.mismatch; "" if none was
	Message wire.MessageType // of the frame at fault; "" if it is not known
	Path    string           // JSON Pointer in the body or payload, or ""
	Text    string           // what is wrong
	Sent    *wire.Error      // what the plugin said, if that is what ended the session
	Cause   error
}

func (f *Fault) Error() string {
	var b strings.Builder
	if f.Message != "" {
		fmt.Fprintf(&b, "%s: ", f.Message)
	}
	if f.Path != "" {
		fmt.Fprintf(&b, "%s ", f.Path)
	}
	b.WriteString(f.Text)
	if f.Rule != "" && f.Rule != f.Code {
		fmt.Fprintf(&b, " (%s)", f.Rule)
	}
	return b.String()
}

func (f *Fault) Unwrap() error { return f.Cause }

// AfterCrash returns f with what is known once the process has ended by failing; status
// says how it ended, as "exit status 3".
func (f *Fault) AfterCrash(status string) *Fault {
	if f.Code != wire.CodePluginCrashed {
		return f
	}
	g := *f
	g.Text = "the plugin crashed (" + status + ")"
	return &g
}

// A BadRequest says why a request cannot be sent. Nothing was sent.
type BadRequest struct{ wire.Fault }

func (e *BadRequest) Error() string { return "the request cannot be sent: " + e.Fault.Error() }

// NotAccepted says that the plugin announced its end before it accepted the request:
// it has not been looked at and may be sent again, in another session.
type NotAccepted struct{ Reason string }

func (e *NotAccepted) Error() string {
	return "the plugin went away before it accepted the request: " + e.Reason
}

// Cancelled says that the plugin stopped the request because it was asked to.
type Cancelled struct {
	Receipt *wire.Receipt // nil if there is none
	Cause   error         // why it was asked to
}

func (e *Cancelled) Error() string { return fmt.Sprintf("cancelled: %v", e.Cause) }
func (e *Cancelled) Unwrap() error { return e.Cause }

// GivenUp says that a request was asked to stop and did not in time, or could not be
// asked. What it did is not known.
type GivenUp struct {
	Cause error // why it was to stop: ErrDeadline, or the cause of its context or cancel
}

func (e *GivenUp) Error() string { return fmt.Sprintf("given up: %v", e.Cause) }
func (e *GivenUp) Unwrap() error { return e.Cause }

// ErrDeadline is the cause of what ends because its time is over. It wraps
// context.DeadlineExceeded.
var ErrDeadline error = deadline{}

type deadline struct{}

func (deadline) Error() string {
	return "the request's deadline is past: " + context.DeadlineExceeded.Error()
}
func (deadline) Unwrap() error { return context.DeadlineExceeded }

// malformed makes a fault of the plugin of a broken rule.
func malformed(t wire.MessageType, rule wire.Code, format string, args ...any) *Fault {
	return &Fault{Code: wire.CodePluginMalformed, Rule: rule, Message: t, Text: fmt.Sprintf(format, args...)}
}

// violation is malformed with state.violation.
func violation(t wire.MessageType, format string, args ...any) *Fault {
	return malformed(t, wire.CodeStateViolation, format, args...)
}

// broken makes a fault of what package wire says.
func broken(t wire.MessageType, err error) *Fault {
	var w *wire.Fault
	if !errors.As(err, &w) {
		return &Fault{Code: wire.CodePluginMalformed, Message: t, Text: err.Error(), Cause: err}
	}
	return &Fault{Code: wire.CodePluginMalformed, Rule: w.Code, Message: t, Path: w.Path, Text: shown(w.Message), Cause: err}
}

// ended makes a fault of an error frame that ends the session.
func endedBy(e *wire.Error) *Fault {
	return &Fault{Code: e.Code, Message: wire.TypeError, Text: "the plugin ended the session: " + shown(e.Message), Sent: e}
}

// gone makes a fault of a connection that ended or failed.
func (c *Client) gone(err error) *Fault {
	var w *wire.Fault
	switch {
	case errors.As(err, &w):
		f := broken("", err)
		if text, ok := c.head.text(); ok && c.sequence == 0 {
			f.Text = "the plugin wrote text where frames belong, beginning with " + shown(text) + "; its log is stderr"
		}
		return f
	case errors.Is(err, io.EOF):
		return &Fault{Code: wire.CodePluginCrashed, Text: "the plugin closed the connection", Cause: err}
	}
	return &Fault{Code: wire.CodePluginCrashed, Text: "the connection to the plugin failed: " + shown(err.Error()), Cause: err}
}

// head remembers the first bytes of a connection, which tell a banner from a frame.
type head struct {
	r     io.Reader
	first []byte
}

func (h *head) Read(b []byte) (int, error) {
	n, err := h.r.Read(b)
	if room := 64 - len(h.first); room > 0 && n > 0 {
		h.first = append(h.first, b[:min(n, room)]...)
	}
	return n, err
}

// text returns the first bytes if they can be text. A frame's length cannot: its first
// byte is 0 below 16 MiB.
func (h *head) text() (string, bool) {
	if len(h.first) == 0 || h.first[0] < ' ' && h.first[0] != '\n' && h.first[0] != '\r' && h.first[0] != '\t' || h.first[0] > '~' {
		return "", false
	}
	return strconv.Quote(string(h.first)), true
}

// shown bounds and redacts a text of the plugin's.
func shown(s string) string {
	const enough = 1024
	s = redact.Line(strings.ToValidUTF8(s, "\uFFFD"))
	if len(s) > enough {
		s = strings.ToValidUTF8(s[:enough], "") + "…"
	}
	return s
}
