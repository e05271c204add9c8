package conformance

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/ijson"
)

// maxLine is the most bytes of a message of the call protocol.
const maxLine = 1 << 20

// lineReader returns a function like readFrame that reads lines.
func lineReader() func(io.Reader) ([]byte, error) {
	var b *bufio.Reader
	return func(r io.Reader) ([]byte, error) {
		if b == nil {
			b = bufio.NewReaderSize(r, 64<<10)
		}
		line, err := b.ReadBytes('\n')
		switch {
		case len(line) > 0 && err == io.EOF:
			return nil, fmt.Errorf("an answer that no line feed ends: %.80q", line)
		case err != nil:
			return nil, err
		}
		return line[:len(line)-1], nil
	}
}

var rpcCodes = []string{"-32700", "-32601", "-32602", "-32603", "-32000", "-32001", "-32002", "-32003"}

// checkLine holds an answer to what is true of each.
func (r *run) checkLine(got received) (*frame, error) {
	f := &frame{size: len(got.text), text: got.text, body: got.text, arrived: got.at}
	wrong := func(format string, args ...any) (*frame, error) {
		return nil, &failure{"answers as every answer must be", fmt.Sprintf(format, args...) + fmt.Sprintf(": %.200q", got.text)}
	}
	if len(got.text) > maxLine {
		return wrong("an answer of %d bytes", len(got.text))
	}
	if err := ijson.Check(got.text); err != nil {
		return wrong("an answer that is no strict JSON (%v)", err)
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(got.text, &m) != nil || m == nil {
		return wrong("an answer that is no object")
	}
	_, result := m["result"]
	failed, isError := m["error"]
	if len(m) != 3 || string(m["jsonrpc"]) != `"2.0"` || m["id"] == nil || result == isError {
		return wrong("an answer must have jsonrpc, id, and one of result and error")
	}
	if isError {
		var e map[string]json.RawMessage
		if json.Unmarshal(failed, &e) != nil || len(e) != 2 || !slices.Contains(rpcCodes, string(e["code"])) {
			return wrong("an error must have one of the codes and a message")
		}
		var message string
		if json.Unmarshal(e["message"], &message) != nil || len(message) > 1024 {
			return wrong("an error's message is a string of at most 1024 bytes")
		}
	}
	return f, nil
}

// initialize sends initialize with the scopes of a JSON list (all of the
// manifest's where none is given) and expects its result.
func (r *run) initialize(s step) error {
	scopes := s.text
	if scopes == "" && r.own != nil {
		scopes = r.own.scopes
	} else if scopes == "" {
		scopes = `["project.metadata.read","project.files.read","project.operate"]`
	}
	err := r.rpc(step{line: s.line, text: `initialize {"protocolVersion":"switchyard.plugin/v1","hostVersion":"1.0.0","grantedScopes":` + scopes + `}`})
	if err != nil {
		return err
	}
	return r.reply(step{line: s.line, edits: []edit{{s.line, "result.grantedScopes", "same-set " + scopes}}})
}

// rpc sends a request with the next id: METHOD [PARAMS].
func (r *run) rpc(s step) error {
	method, params, _ := strings.Cut(s.text, " ")
	if params == "" {
		params = "{}"
	}
	params, err := r.vars.expand(params)
	if err != nil {
		return err
	}
	if err := r.ensure(); err != nil {
		return err
	}
	r.conn.sent++
	return r.sendLine(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%s,"params":%s}`, r.conn.sent, quote(method), params))
}

// line sends a text as a line, whatever it is.
func (r *run) line(s step) error {
	text, err := r.vars.expand(s.text)
	if err != nil {
		return err
	}
	return r.sendLine(text)
}

func (r *run) sendLine(text string) error {
	r.traced("->", text)
	return r.write([]byte(text + "\n"))
}

// reply expects the next answer: [ID] and matchers. Without an id it is that of
// the last request.
func (r *run) reply(s step) error {
	id := s.text
	if id == "" {
		id = strconv.FormatUint(r.conn.sent, 10)
	}
	if err := r.ensure(); err != nil {
		return err
	}
	edits := append([]edit{{s.line, "id", id}}, s.edits...)
	timeout := r.patience
	if i := slices.IndexFunc(edits, func(e edit) bool { return e.path == "within" }); i >= 0 {
		var err error
		if timeout, err = time.ParseDuration(edits[i].text); err != nil {
			return err
		}
		edits = slices.Delete(edits, i, i+1)
	}
	if r.starting() {
		timeout *= startFactor
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for len(r.pending) == 0 {
		switch err := r.more(timer.C); {
		case errors.Is(err, errQuiet):
			return &failure{"an answer to request " + id, "nothing in time"}
		case errors.Is(err, errEnded):
			return &failure{"an answer to request " + id, "the end of the output" + r.howItEnded()}
		case err != nil:
			return err
		}
	}
	f := r.pending[0]
	r.pending = r.pending[1:]
	for _, e := range edits {
		m, err := parseMatcher(e.text)
		if err != nil {
			return err
		}
		if err := m.apply(r.vars, e.path, at(f.text, e.path)); err != nil {
			var wrong *mismatch
			if errors.As(err, &wrong) {
				return &failure{"an answer with " + wrong.expected, wrong.received + " in " + r.describe(f)}
			}
			return fmt.Errorf("line %d: %w", e.line, err)
		}
	}
	return nil
}

// replies expects an error with the code for the last request, or for no
// request where "null" follows.
func (r *run) replies(s step) error {
	code, id, _ := strings.Cut(s.text, " ")
	return r.reply(step{line: s.line, text: id, edits: []edit{{s.line, "error.code", code}}})
}
