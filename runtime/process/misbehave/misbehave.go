// Package misbehave is a call-protocol plugin that behaves, or misbehaves, as
// its arguments say. Tests re-execute their own binary as it, so that every
// fault is a real process doing the real thing.
//
// It is imported by tests only and shares no code with the host or the SDK, so
// that neither can hide the other's mistakes. It states the identity that
// plugin.json in its working directory declares.
//
//	func TestMain(m *testing.M) {
//		misbehave.Main()
//		os.Exit(m.Run())
//	}
package misbehave

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

const flag = "-misbehave"

// Args returns the arguments that make a test binary behave as name. Options
// are "key=value": "pids=FILE" makes every process that the behaviour starts
// add a line with its pid to FILE, and "ready=PIPE" then write a byte to the
// named pipe PIPE, which the test must have open.
func Args(name string, options ...string) []string {
	return append([]string{flag, name}, options...)
}

// Names lists every behaviour in alphabetical order.
func Names() []string {
	var names []string
	for name := range behaviours {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Main returns at once unless the arguments ask for a behaviour; then it
// behaves and does not return.
func Main() {
	if len(os.Args) < 3 || os.Args[1] != flag {
		return
	}
	p := &plugin{in: bufio.NewReaderSize(os.Stdin, 64<<10), options: map[string]string{}}
	for _, option := range os.Args[3:] {
		key, value, _ := strings.Cut(option, "=")
		p.options[key] = value
	}
	name := os.Args[2]
	if run, ok := helpers[name]; ok {
		run(p)
		os.Exit(0)
	}
	b, ok := behaviours[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "unknown behaviour %q\n", name)
		os.Exit(64)
	}
	p.serve(b)
	os.Exit(0)
}

// A behaviour deviates at some steps of an otherwise correct exchange; nil
// steps are done correctly.
type behaviour struct {
	start      func(*plugin)                    // before the first request is read
	initialize func(*plugin, answer)            // instead of the answer to initialize
	method     func(*plugin, answer)            // instead of the answer to a method
	identity   func(map[string]any) interface{} // changes the initialize result
	end        func(*plugin)                    // after stdin has closed, instead of exiting
}

type plugin struct {
	in      *bufio.Reader
	options map[string]string
}

// An answer is the correct answer to a request.
type answer struct {
	id     json.RawMessage
	result any
}

func (a answer) line() []byte {
	return encode(map[string]any{"jsonrpc": "2.0", "id": a.id, "result": a.result})
}

// text is the correct answer as a string, for textual deviations.
func (a answer) text() string { return string(a.line()) }

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func (p *plugin) serve(b behaviour) {
	if b.start != nil {
		b.start(p)
	}
	for {
		line, err := p.in.ReadBytes('\n')
		if err != nil {
			if b.end != nil {
				b.end(p)
			}
			return
		}
		var request struct {
			ID     json.RawMessage
			Method string
			Params map[string]any
		}
		if err := json.Unmarshal(line, &request); err != nil {
			fmt.Fprintf(os.Stderr, "bad request: %v\n", err)
			os.Exit(65)
		}
		a := answer{id: request.ID, result: p.result(request.Method, request.Params)}
		switch {
		case request.Method == "initialize" && b.identity != nil:
			a.result = b.identity(a.result.(map[string]any))
			say(a.line())
		case request.Method == "initialize" && b.initialize != nil:
			b.initialize(p, a)
		case request.Method != "initialize" && b.method != nil:
			b.method(p, a)
		default:
			say(a.line())
		}
	}
}

// result is the correct result of a method.
func (p *plugin) result(method string, params map[string]any) any {
	const now = "2024-02-29T12:00:00.5+02:00"
	switch method {
	case "initialize":
		manifest := map[string]any{}
		data, err := os.ReadFile("plugin.json")
		if err == nil {
			err = json.Unmarshal(data, &manifest)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "plugin.json: %v\n", err)
			os.Exit(66)
		}
		delete(manifest, "executable")
		delete(manifest, "arguments")
		return map[string]any{"protocolVersion": params["protocolVersion"], "plugin": manifest, "grantedScopes": params["grantedScopes"]}
	case "plugin.health":
		return map[string]any{"status": "healthy", "message": "fine", "checkedAt": now}
	case "project.inspect":
		project, _ := params["project"].(map[string]any)
		root, sent := project["root"].(string)
		if !sent {
			root = "(not sent)"
		}
		return map[string]any{
			"summary":    "one fact",
			"facts":      []any{map[string]any{"id": "root", "label": "Root", "value": root, "source": "host"}},
			"actions":    []any{map[string]any{"id": "touch", "name": "Touch", "description": "Does nothing.", "risk": "none"}},
			"warnings":   []any{},
			"observedAt": now,
		}
	case "project.operate":
		return map[string]any{"status": "succeeded", "summary": "did nothing", "output": map[string]any{"input": params["input"]}}
	}
	fmt.Fprintf(os.Stderr, "unknown method %q\n", method)
	os.Exit(67)
	return nil
}

// say writes one message.
func say(line []byte) { raw(string(line) + "\n") }

// raw writes bytes to stdout as they are.
func raw(s string) {
	if _, err := os.Stdout.WriteString(s); err != nil {
		os.Exit(68)
	}
}

// hang never returns and uses no processor.
func hang() {
	r, w, _ := os.Pipe()
	defer w.Close()
	r.Read(make([]byte, 1))
}
