package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/internal/lines"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/internal/strict"
)

// ErrInputClosed is the cause with which the context of a running call is
// cancelled when the host closes standard input.
var ErrInputClosed = errors.New("the host closed standard input")

// Serve answers the requests that it reads from in until in ends, and then
// returns nil. Requests are answered one after the other, in order, each with
// one line written by one call of out.Write; nothing else is written to out.
// What a handler panicked with, and its stack, go to standard error and never
// to out.
//
// It returns an error if m is invalid, if h lacks what m declares, if in or out
// fails, or if ctx is cancelled. A call that is running then is waited for; a
// read from in that is blocked is left behind.
func Serve(ctx context.Context, in io.Reader, out io.Writer, m Manifest, h Handler) error {
	return serve(ctx, in, out, os.Stderr, m, h, nil)
}

// serve is Serve. interrupts, if not nil, is called once, before the first call
// that is watched, with what cancels the connection.
func serve(ctx context.Context, in io.Reader, out, log io.Writer, m Manifest, h Handler, interrupts func(context.CancelCauseFunc)) error {
	if err := m.Validate(); err != nil {
		return err
	}
	if err := implements(m, h); err != nil {
		return err
	}
	connection, interrupt := context.WithCancelCause(ctx)
	defer interrupt(nil)
	calls, cancel := context.WithCancelCause(connection)
	requests := newRequests(in, func() { cancel(ErrInputClosed) })
	endless := ctx.Done() == nil // nothing but the input can end the connection
	s := &server{manifest: m, handler: h, log: log, watch: func() {
		requests.ahead()
		if interrupts != nil {
			interrupts(interrupt)
			interrupts, endless = nil, false
		}
	}}
	for {
		var l lines.Line
		var err error
		if endless {
			l, err = requests.take()
		} else {
			l, err = requests.wait(connection)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case connection.Err() != nil:
			return context.Cause(connection)
		case err != nil:
			return fmt.Errorf("read request: %w", err)
		}
		if _, err := out.Write(s.answer(calls, l)); err != nil {
			return fmt.Errorf("write response: %w", err)
		}
	}
}

// A server is the state of one connection.
type server struct {
	manifest    Manifest
	handler     Handler
	log         io.Writer
	watch       func() // from now on the call's context ends with the input and with signals
	initialized bool
	grants      []Scope
}

// answer returns the response to one line, with its line feed.
func (s *server) answer(ctx context.Context, l lines.Line) []byte {
	r, fault := parseRequest(l)
	if fault != nil {
		return s.encode(json.RawMessage("null"), nil, fault)
	}
	result, fault := s.dispatch(ctx, r)
	return s.encode(r.id, result, fault)
}

// parseRequest reads one line as a request. What is not one cannot be answered
// by its id, whatever it holds.
func parseRequest(l lines.Line) (request, *Error) {
	var r request
	if l.TooLong {
		return r, bounded(CodeMalformed, fmt.Sprintf("malformed request: more than %d bytes", MaxMessageBytes))
	}
	if err := strict.Check(l.Text); err != nil {
		return r, bounded(CodeMalformed, "malformed request: "+err.Error())
	}
	if err := strict.Object(l.Text,
		strict.Required("jsonrpc", strict.Exactly("2.0")),
		strict.Required("id", strict.Integer(&r.id)),
		strict.Required("method", strict.Text(&r.method)),
		strict.Optional("params", strict.Raw(&r.params)),
	); err != nil {
		return r, bounded(CodeMalformed, "malformed request: "+err.Error())
	}
	return r, nil
}

// encode makes a response of a result or, if fault is not nil, of fault. A
// result that cannot be sent becomes an error.
func (s *server) encode(id json.RawMessage, result any, fault *Error) []byte {
	if fault == nil {
		text, err := encodeResult(id, result)
		if err == nil {
			return append(text, '\n')
		}
		fault = bounded(CodeInternal, "the handler returned an invalid result: "+err.Error())
	}
	text, err := json.Marshal(failure{JSONRPC: "2.0", ID: id, Error: fault})
	if err != nil {
		panic(err) // an id that was read and a string: nothing here can fail
	}
	return append(text, '\n')
}

// encodeResult makes a response that every reader of the protocol accepts.
func encodeResult(id json.RawMessage, result any) ([]byte, error) {
	raw, err := json.Marshal(result)
	if err != nil {
		return nil, err
	}
	text := make([]byte, 0, len(raw)+len(id)+64)
	text = append(append(text, `{"jsonrpc":"2.0","id":`...), id...)
	text = append(append(append(text, `,"result":`...), raw...), '}')
	if len(text) > MaxMessageBytes {
		return nil, fmt.Errorf("a response of %d bytes, more than %d", len(text), MaxMessageBytes)
	}
	return text, strict.Check(text)
}
