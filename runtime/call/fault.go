package call

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/switchyard-plugins/switchyard/runtime/process/redact"
	"github.com/switchyard-plugins/switchyard/schemas/ijson"
	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

// A Code names a kind of fault.
type Code string

// The kinds of faults.
const (
	CodeBanner           Code = "plugin.banner"            // text on stdout before the answer to initialize
	CodeMalformed        Code = "plugin.malformed"         // not the JSON, or not the message, that the protocol has
	CodeOversized        Code = "plugin.oversized"         // more than MaxMessage bytes
	CodeUnknownField     Code = "plugin.unknown_field"     // a member that the protocol has not
	CodeWrongID          Code = "plugin.wrong_id"          // an answer to another request
	CodeExtraOutput      Code = "plugin.extra_output"      // output that nothing asked for
	CodeIdentityMismatch Code = "plugin.identity_mismatch" // not the plugin that was reviewed
	CodeProtocolMismatch Code = "plugin.protocol_mismatch" // another protocol
	CodeError            Code = "plugin.error"             // an error answer; Fault.RPC holds it
	CodeExited           Code = "plugin.exited"            // the output ended before the answer
	CodeCrashed          Code = "plugin.crashed"           // the same, and the process failed; see AfterCrash
	CodeTimeout          Code = "plugin.timeout"           // the call's time was over
	CodeCancelled        Code = "cancelled"                // the caller gave up; no fault of the plugin
)

// StepEnd is the Method of faults after the last answer.
const StepEnd = "end"

// maxExcerpt bounds how many bytes of foreign text a fault repeats at a place.
const maxExcerpt = 200

// A Fault is why a call failed, with its facts. Expected, Found, Field and Excerpt
// hold foreign text redacted and cut at maxExcerpt bytes, and so does the message of
// Error; RPC is as the plugin sent it. All of it is valid UTF-8 and nothing of it is
// escaped: that is for whoever displays it, once.
type Fault struct {
	Code     Code
	Method   string // the method that was called, or StepEnd
	Message  string // what is wrong, without foreign text other than member names
	Field    string // the member at fault: a name ("plugin.version") or a JSON pointer, or ""
	Expected string
	Found    string
	Excerpt  string        // the beginning of what the plugin wrote
	RPC      *plugin.Error // of CodeError, and of CodeProtocolMismatch if the plugin refused
	Cause    error         // *ijson.Error, the context's cause, or nil
}

func (f *Fault) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", f.Method, f.Message)
	if f.Expected != "" || f.Found != "" {
		fmt.Fprintf(&b, ": expected %s, found %s", f.Expected, f.Found)
	}
	if f.RPC != nil {
		fmt.Fprintf(&b, ": %s (code %d)", bounded(f.RPC.Message, plugin.MaxErrorBytes), f.RPC.Code)
	}
	if f.Excerpt != "" {
		fmt.Fprintf(&b, ": %s", f.Excerpt)
	}
	return b.String()
}

func (f *Fault) Unwrap() error { return f.Cause }

// AfterCrash returns f with what is known once the process has ended by failing: an
// output that ended early was a crash; status says how it ended, as "exit status 3".
// It is not for a process that ended cleanly, or that the host ended after the fault:
// that tells nothing more about it.
func (f *Fault) AfterCrash(status string) *Fault {
	if f.Code != CodeExited {
		return f
	}
	g := *f
	g.Code = CodeCrashed
	g.Message = "the plugin crashed (" + status + ")"
	return &g
}

func mismatch(code Code, method, field, expected, found string) *Fault {
	if found == "" {
		found = "(empty)"
	}
	return &Fault{Code: code, Method: method, Field: field, Message: field + " is not what it must be",
		Expected: shown(expected), Found: shown(found)}
}

func unknownStatus(method, found string, known ...string) *Fault {
	f := mismatch(CodeMalformed, method, "/result/status", "", found)
	f.Message = "unknown status"
	f.Expected = "one of " + strings.Join(known, ", ")
	return f
}

// looksLikeObject reports whether a line begins like a JSON object.
func looksLikeObject(line []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(line, " \t\r"), []byte("{"))
}

// notAnObject tells text from broken messages.
func notAnObject(method string, line []byte) *Fault {
	f := &Fault{Code: CodeMalformed, Method: method, Excerpt: excerpt(line)}
	switch {
	case len(bytes.Trim(line, " \t\r")) == 0:
		f.Message = "an empty line instead of an answer"
	case bytes.HasPrefix(line, []byte("\xef\xbb\xbf")):
		f.Message = "the answer begins with a byte order mark"
	case method == plugin.MethodInitialize:
		f.Code = CodeBanner
		f.Message = "the plugin wrote text to stdout, which carries nothing but the protocol; log to stderr"
	default:
		f.Message = "the answer is not a JSON object; stdout carries nothing but the protocol"
	}
	return f
}

func oversized(method string, partial []byte) *Fault {
	return &Fault{Code: CodeOversized, Method: method, Message: fmt.Sprintf("the answer has more than %d bytes", MaxMessage),
		Excerpt: excerpt(partial)}
}

func extraOutput(method string, rest []byte) *Fault {
	return &Fault{Code: CodeExtraOutput, Method: method, Message: "the plugin wrote more than the answer", Excerpt: excerpt(rest)}
}

// undecodable makes a fault of what the strict reader says about the part of
// the answer at pointer.
func undecodable(method, pointer string, part []byte, err error) *Fault {
	f := &Fault{Code: CodeMalformed, Method: method, Message: "the answer cannot be read", Excerpt: excerpt(part), Cause: err}
	var e *ijson.Error
	if errors.As(err, &e) {
		if e.Code == ijson.CodeUnknownMember {
			f.Code = CodeUnknownField
		}
		f.Field = shown(pointer + e.Pointer)
		f.Message = "the answer cannot be read: " + e.Message
		if f.Field != "" {
			f.Message += " at " + f.Field
		}
	}
	return f
}

// outside makes a fault of an error answer that the protocol does not have: its code is
// none of the protocol's, or its message is too long. Nil: it is in good form.
func outside(method string, e plugin.Error) *Fault {
	codes := []plugin.Code{plugin.CodeMalformed, plugin.CodeUnknownMethod, plugin.CodeBadParams, plugin.CodeInternal,
		plugin.CodeApplication, plugin.CodeProtocolMismatch, plugin.CodeState, plugin.CodeNotGranted}
	if !slices.Contains(codes, e.Code) {
		f := mismatch(CodeMalformed, method, "/error/code", "", strconv.Itoa(int(e.Code)))
		f.Message = "the error code is none of the protocol's"
		f.Expected = strings.Trim(strings.ReplaceAll(fmt.Sprintf("%d", codes), " ", ", "), "[]")
		return f
	}
	if n := len(e.Message); n > plugin.MaxErrorBytes {
		return &Fault{Code: CodeMalformed, Method: method, Field: "/error/message", Excerpt: shown(e.Message),
			Message: fmt.Sprintf("the error's message has %d bytes, at most %d are allowed", n, plugin.MaxErrorBytes)}
	}
	return nil
}

// refusal makes a fault of an error answer in good form.
func refusal(method string, e plugin.Error) *Fault {
	f := &Fault{Code: CodeError, Method: method, Message: "the plugin answered with an error", RPC: &e}
	if method == plugin.MethodInitialize && e.Code == plugin.CodeProtocolMismatch {
		f.Code = CodeProtocolMismatch
		f.Message = "the plugin refuses the protocol"
	}
	return f
}

// contextFault says why the call's context ended.
func contextFault(ctx context.Context, method string) *Fault {
	cause := context.Cause(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &Fault{Code: CodeTimeout, Method: method, Message: "the plugin did not answer in time", Cause: cause}
	}
	return &Fault{Code: CodeCancelled, Method: method, Message: "the call was cancelled", Cause: cause}
}

// readFault explains a read that ended without a message; partial bytes of one
// were there.
func readFault(ctx context.Context, method string, err error, partial int) *Fault {
	if ctx.Err() != nil {
		f := contextFault(ctx, method)
		if partial > 0 {
			f.Message += fmt.Sprintf("; %d bytes came without a line feed", partial)
		}
		return f
	}
	f := &Fault{Code: CodeExited, Method: method, Message: "the plugin closed its output before it answered", Cause: err}
	if partial > 0 {
		f.Message = "the plugin's output ended in the middle of an answer"
	}
	return f
}

// excerpt returns the beginning of what a plugin wrote, redacted.
func excerpt(b []byte) string {
	const enough = 2 << 10 // whole secrets, before the cut
	return shown(string(b[:min(len(b), enough)]))
}

func shown(s string) string { return bounded(s, maxExcerpt) }

// bounded redacts s, as one line so that no secret hides behind a line feed, and cuts
// it at n bytes.
func bounded(s string, n int) string {
	const more, lineFeed = "…", "\u2424"
	s = redact.Line(strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\n", lineFeed))
	s = strings.ReplaceAll(s, lineFeed, "\n")
	if len(s) <= n {
		return s
	}
	for n -= len(more); n > 0 && !utf8.RuneStart(s[n]); n-- {
	}
	return s[:n] + more
}
