package commands

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/switchyard-plugins/switchyard/commands/render"
)

// success and failed are the two forms of the document that --json prints.
type success struct {
	APIVersion string   `json:"apiVersion"`
	Command    string   `json:"command"`
	OK         bool     `json:"ok"`
	Data       any      `json:"data"`
	Warnings   []string `json:"warnings"`
}

type failed struct {
	APIVersion string      `json:"apiVersion"`
	Command    string      `json:"command"`
	OK         bool        `json:"ok"`
	Error      failedError `json:"error"`
}

type failedError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint"`    // the next command, "" where none would help
	Details any    `json:"details"` // an object; what it holds depends on code
}

// flush writes the result of a command that succeeded.
func (in *invocation) flush() error {
	if !in.globals.json {
		return in.flushText()
	}
	return in.document(success{APIVersion: apiVersion, Command: in.commandName(), OK: true, Data: in.data, Warnings: in.warnings})
}

func (in *invocation) flushText() error {
	in.bar.rest()
	_, err := in.env.Stdout.Write(in.text.Bytes())
	in.text.Reset()
	return err
}

func (in *invocation) document(v any) error {
	out, err := encode(v)
	if err != nil {
		return err
	}
	_, err = in.env.Stdout.Write(out)
	return err
}

// encode returns v as indented JSON with a final line feed: members in the order
// of the struct or of the alphabet, nil slices as [], bytes that are not UTF-8
// replaced, and nothing that a terminal would obey.
func encode(v any) ([]byte, error) {
	out, err := json.Marshal(v,
		json.Deterministic(true),
		jsontext.AllowInvalidUTF8(true),
		jsontext.EscapeForJS(true),
		jsontext.WithIndent("  "),
	)
	if err != nil {
		return nil, err
	}
	return append(render.JSON(out), '\n'), nil
}

// fail writes what is left to say about a failure.
func (in *invocation) fail(f failure) {
	if in.globals.json {
		if f.details == nil {
			f.details = struct{}{}
		}
		doc := failed{APIVersion: apiVersion, Command: in.commandName(), Error: failedError{f.code, f.message, f.hint, f.details}}
		// What cannot be encoded or written here has nowhere else to go: the exit code stands.
		if err := in.document(doc); err != nil {
			in.stderr("switchyard: %s\n", err)
		}
		return
	}
	if err := in.flushText(); err != nil {
		in.stderr("switchyard: %s\n", &outputError{err})
	}
	in.failText(f)
}
