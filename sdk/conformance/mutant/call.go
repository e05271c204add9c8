package mutant

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/ijson"
)

// callManifest is the manifest of the call protocol.
type callManifest struct {
	SchemaVersion   string   `json:"schemaVersion"`
	ID              string   `json:"id"`
	Name            string   `json:"name"`
	Version         string   `json:"version"`
	ProtocolVersion string   `json:"protocolVersion"`
	Capabilities    []string `json:"capabilities"`
	RequestedScopes []string `json:"requestedScopes"`
}

// A caller serves the call protocol.
type caller struct {
	p       *program
	m       callManifest
	out     io.Writer
	granted []string
	ready   bool
	ctx     context.Context
}

type rpcError struct {
	code    int
	message string
}

const maxMessage = 1 << 20

// call serves lines until the input ends.
func (p *program) call(in io.Reader, out io.Writer) error {
	text, err := os.ReadFile(filepath.Join(p.dir, "plugin.json"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := &caller{p: p, out: out, ctx: ctx}
	if err := json.Unmarshal(text, &c.m); err != nil {
		return err
	}
	lines := make(chan []byte, 16)
	go func() {
		defer close(lines)
		defer cancel()
		r := bufio.NewReaderSize(in, 64<<10)
		for {
			line, err := readLine(r, p.has("reads-long-lines"))
			if line != nil {
				lines <- line
			}
			if err != nil {
				return
			}
		}
	}()
	for line := range lines {
		c.serve(line)
	}
	return nil
}

// readLine reads a line in bounded memory; one that is too long is "\n", which is
// no message.
func readLine(r *bufio.Reader, long bool) ([]byte, error) {
	line := []byte{}
	tooLong := false
	for {
		part, err := r.ReadSlice('\n')
		if !tooLong {
			line = append(line, part...)
		}
		if len(line) > maxMessage+1 || len(line) == maxMessage+1 && line[maxMessage] != '\n' {
			if !long {
				tooLong, line = true, line[:0]
			}
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && len(line) == 0 && !tooLong:
			return nil, err
		case tooLong:
			return []byte("\n"), err
		case err != nil:
			return line, err
		}
		return line[:len(line)-1], nil
	}
}

func (c *caller) serve(line []byte) {
	id, result, failed := c.answer(line)
	if failed != nil {
		if len(failed.message) > 1024 && !c.p.has("writes-long-messages") {
			failed.message = failed.message[:1024]
		}
		code := failed.code
		if c.p.has("one-code-for-all") {
			code = -32603
		}
		fmt.Fprintf(c.out, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`+"\n", id, code, quote(failed.message))
		return
	}
	fmt.Fprintf(c.out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, result)
}

func (c *caller) answer(line []byte) (id, result string, failed *rpcError) {
	id = "null"
	if err := ijson.Check(line); err != nil && !c.p.has("call-takes-loose-json") {
		return id, "", &rpcError{-32700, "the line is not strict JSON"}
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(line, &m) != nil || m == nil {
		return id, "", &rpcError{-32700, "the line is no request"}
	}
	var method string
	if string(m["jsonrpc"]) != `"2.0"` || !ofType("integer", parse(m["id"])) || m["method"] == nil || m["method"][0] != '"' || json.Unmarshal(m["method"], &method) != nil {
		return id, "", &rpcError{-32700, "the line is no request"}
	}
	for name := range m {
		if !slices.Contains([]string{"jsonrpc", "id", "method", "params"}, name) {
			return id, "", &rpcError{-32700, "the line has a member that is not known"}
		}
	}
	id = string(m["id"])
	if c.p.has("changes-ids") {
		id += "0"
	}
	result, failed = c.method(method, m["params"])
	return id, result, failed
}

func (c *caller) method(method string, params json.RawMessage) (string, *rpcError) {
	if method == "initialize" {
		return c.initialize(params)
	}
	if !c.ready && !c.p.has("needs-no-initialize") {
		return "", &rpcError{-32002, "not initialized"}
	}
	type project struct {
		ID, DisplayName string
		Root            *string
	}
	const projectSchema = `{` + closed + `,"required":["id","displayName"],"properties":{"id":{"type":"string","minLength":1,"pattern":"[^ ]"},"displayName":{"type":"string"},"root":{"type":"string","minLength":1}}}`
	switch method {
	case "plugin.health":
		if !c.valid(`{`+closed+`}`, params) {
			return "", &rpcError{-32602, "params"}
		}
		return fmt.Sprintf(`{"status":"healthy","checkedAt":%s}`, quote(time.Now().UTC().Format(time.RFC3339))), nil
	case "project.inspect":
		if !c.may("project.metadata.read") {
			return "", &rpcError{-32003, "project.metadata.read is not granted"}
		}
		if !c.valid(`{`+closed+`,"required":["project"],"properties":{"project":`+projectSchema+`}}`, params) {
			return "", &rpcError{-32602, "params"}
		}
		var b struct{ Project project }
		_ = json.Unmarshal(params, &b) // it was validated
		if b.Project.Root != nil && !c.may("project.files.read") {
			return "", &rpcError{-32003, "project.files.read is not granted"}
		}
		return c.inspect(b.Project.DisplayName, b.Project.Root), nil
	case "project.operate":
		if !c.may("project.operate") {
			return "", &rpcError{-32003, "project.operate is not granted"}
		}
		if !c.valid(`{`+closed+`,"required":["project","action","input"],"properties":{"project":`+projectSchema+`,"action":{"type":"string","minLength":1},"input":true}}`, params) {
			return "", &rpcError{-32602, "params"}
		}
		var b struct {
			Project project
			Action  string
			Input   json.RawMessage
		}
		_ = json.Unmarshal(params, &b) // it was validated
		if b.Project.Root != nil && !c.may("project.files.read") {
			return "", &rpcError{-32003, "project.files.read is not granted"}
		}
		root := ""
		if b.Project.Root != nil {
			root = *b.Project.Root
		}
		return c.operate(root, b.Action, b.Input)
	}
	return "", &rpcError{-32601, "no such method"}
}

func (c *caller) may(scope string) bool {
	return slices.Contains(c.granted, scope) || c.p.has("grants-every-scope")
}

func (c *caller) valid(schemaText string, params json.RawMessage) bool {
	if params == nil {
		return false
	}
	s := &schema{parse([]byte(schemaText)).(map[string]any), &program{}}
	return s.check(params) == nil || c.p.has("takes-bad-params")
}

func (c *caller) initialize(params json.RawMessage) (string, *rpcError) {
	if c.ready && !c.p.has("initializes-twice") {
		return "", &rpcError{-32002, "initialized already"}
	}
	if !c.valid(`{`+closed+`,"required":["protocolVersion","hostVersion","grantedScopes"],"properties":{"protocolVersion":{"type":"string"},"hostVersion":{"type":"string"},
		"grantedScopes":{"type":"array","uniqueItems":true,"items":{"type":"string","enum":["project.metadata.read","project.files.read","project.operate"]}}}}`, params) {
		return "", &rpcError{-32602, "params"}
	}
	var b struct {
		ProtocolVersion string
		GrantedScopes   []string
	}
	_ = json.Unmarshal(params, &b) // it was validated
	if b.ProtocolVersion != "switchyard.plugin/v1" && !c.p.has("speaks-every-protocol") {
		return "", &rpcError{-32001, "another protocol"}
	}
	for _, s := range b.GrantedScopes {
		if !slices.Contains(c.m.RequestedScopes, s) {
			return "", &rpcError{-32003, "a scope that was never requested"}
		}
	}
	c.ready, c.granted = true, b.GrantedScopes
	m := c.m
	if c.p.has("call-tells-another-version") {
		m.Version = "9.9.9"
	}
	return fmt.Sprintf(`{"protocolVersion":"switchyard.plugin/v1","plugin":%s,"grantedScopes":%s}`, text(m), text(b.GrantedScopes)), nil
}

var actions = []string{"echo", "partial", "failed", "refuse", "report", "raise", "print", "append", "hold"}

func (c *caller) inspect(name string, root *string) string {
	facts := fmt.Sprintf(`{"id":"name","label":"Name","value":%s,"source":"host"}`, quote(name))
	if root != nil {
		facts += fmt.Sprintf(`,{"id":"root","label":"Root","value":%s,"source":"host"}`, quote(*root))
	}
	list := []string{}
	for _, a := range actions {
		list = append(list, fmt.Sprintf(`{"id":%[1]s,"name":%[1]s,"description":"does %[2]s","risk":"none"}`, quote(a), a))
	}
	return fmt.Sprintf(`{"summary":"conformance","facts":[%s],"actions":[%s],"warnings":[],"observedAt":%s}`, facts, strings.Join(list, ","), quote(time.Now().UTC().Format(time.RFC3339)))
}

func (c *caller) operate(root, action string, input json.RawMessage) (string, *rpcError) {
	var v struct{ Message, Marker, Text, Line, Cleanup string }
	_ = json.Unmarshal(input, &v) // what is no object of strings has none of them
	done := func(status, summary, output string) (string, *rpcError) {
		return fmt.Sprintf(`{"status":%s,"summary":%s,"output":%s}`, quote(status), quote(summary), output), nil
	}
	into := func(name, line string) {
		f, err := os.OpenFile(filepath.Join(root, name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err == nil {
			_, err = f.WriteString(line + "\n")
			err = errors.Join(err, f.Sync(), f.Close())
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "mutant:", err)
		}
	}
	switch action {
	case "echo":
		return done("succeeded", "echoed", string(input))
	case "partial":
		return done("partially_succeeded", action, "{}")
	case "failed":
		return done("failed", action, "{}")
	case "refuse":
		return "", &rpcError{-32602, "refused as asked"}
	case "report":
		return "", &rpcError{-32000, v.Message}
	case "raise":
		if c.p.has("call-tells-what-was-raised") {
			return "", &rpcError{-32603, v.Marker}
		}
		return "", &rpcError{-32603, "the action failed"}
	case "print":
		fmt.Println(v.Text)
		fmt.Fprintln(os.Stderr, v.Text)
		return done("succeeded", "printed", "{}")
	case "append":
		into("effects.log", v.Line)
		return done("succeeded", "appended", "{}")
	case "hold":
		if !c.p.has("ignores-call-cancel") {
			<-c.ctx.Done()
		} else {
			select {}
		}
		into("cleanup.log", v.Cleanup)
		return done("failed", "cancelled", "{}")
	}
	if c.p.has("does-unknown-actions") {
		return done("succeeded", "done", "{}")
	}
	return "", &rpcError{-32602, "no such action"}
}
