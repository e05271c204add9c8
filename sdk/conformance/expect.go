package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// connectionLabel is what an expectation names for frames that belong to no
// request.
const connectionLabel = "connection"

// An expectation is a frame that must come: of a type, for a label, with
// members.
type expectation struct {
	kinds   []string
	label   string // connectionLabel for frames without a request
	edits   []edit
	timeout time.Duration
}

// connectionKinds are the types without a request.
var connectionKinds = lazy[map[string]bool]{make: func() map[string]bool {
	return map[string]bool{
		"helloAck": true, "initAck": true, "settingsValidated": true, "health": true, "heartbeat": true, "heartbeatAck": true, "receipt": true, "goAway": true,
	}
}}

// expected reads "TYPE [LABEL] [JSON or CODE]"; TYPE may be a choice a|b.
func (r *run) expected(s step) (expectation, error) {
	kind, rest, _ := strings.Cut(s.text, " ")
	x := expectation{kinds: strings.Split(kind, "|"), timeout: r.patience}
	x.label, rest = takeLabel(strings.TrimSpace(rest), r.names())
	if connectionKinds.get()[x.kinds[0]] {
		x.label = connectionLabel
	}
	for _, e := range s.edits {
		if e.path == "within" {
			d, err := time.ParseDuration(e.text)
			if err != nil {
				return x, err
			}
			x.timeout = d
			continue
		}
		x.edits = append(x.edits, e)
	}
	if rest != "" {
		path := "payload"
		if kind == "error" {
			path, rest = "code", quote(rest)
		}
		x.edits = append([]edit{{s.line, path, rest}}, x.edits...)
	}
	return x, nil
}

// take waits for the expected frame and removes it from what is pending. Frames
// of other requests stay where they are; progress, flow and heartbeats that
// nobody asked for are passed over.
func (r *run) take(x expectation) (*frame, error) {
	if err := r.ensure(); err != nil {
		return nil, err
	}
	id := ""
	if x.label != connectionLabel {
		l, err := r.label(x.label)
		if err != nil {
			return nil, err
		}
		id = l.requestID
	}
	what := article(strings.Join(x.kinds, " or "))
	if x.label != connectionLabel && x.label != defaultLabel {
		what += " of " + x.label
	}
	if r.starting() {
		x.timeout *= startFactor
	}
	timer := time.NewTimer(x.timeout)
	defer timer.Stop()
	for {
		for i := 0; i < len(r.pending); i++ {
			f := r.pending[i]
			mine := f.request == id
			switch {
			case mine && contains(x.kinds, f.kind):
				r.pending = append(r.pending[:i], r.pending[i+1:]...)
				return f, nil
			case mine && passing(f.kind):
				r.pending = append(r.pending[:i], r.pending[i+1:]...)
				i--
			case mine, f.kind == "error" && f.request == "":
				return nil, &failure{what, r.describe(f)}
			}
		}
		switch err := r.more(timer.C); {
		case errors.Is(err, errQuiet):
			return nil, &failure{fmt.Sprintf("%s within %v", what, x.timeout), "nothing"}
		case errors.Is(err, errEnded):
			return nil, &failure{what, "the end of the output" + r.howItEnded()}
		case err != nil:
			return nil, err
		}
	}
}

func article(kind string) string {
	if strings.HasPrefix(kind, "e") || strings.HasPrefix(kind, "i") {
		return "an " + kind
	}
	return "a " + kind
}

// howItEnded tells how the program ended, where it did.
func (r *run) howItEnded() string {
	select {
	case <-r.p.exited:
		return "; the program ended: " + r.p.state.String()
	case <-time.After(100 * time.Millisecond):
		return ""
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func (r *run) expect(s step) error {
	x, err := r.expected(s)
	if err != nil {
		return err
	}
	f, err := r.take(x)
	if err != nil {
		return err
	}
	r.vars["got.messageId"] = string(f.envelope["messageId"])
	return r.matches(f, x.edits)
}

// matches holds a frame to matchers of its body, or with @ of its envelope.
func (r *run) matches(f *frame, edits []edit) error {
	for _, e := range edits {
		m, err := parseMatcher(e.text)
		if err != nil {
			return err
		}
		value := at(f.body, e.path)
		if rest, ok := strings.CutPrefix(e.path, "@"); ok {
			value = at(f.text, rest)
		}
		if err := m.apply(r.vars, e.path, value); err != nil {
			var wrong *mismatch
			if errors.As(err, &wrong) {
				return &failure{article(f.kind) + " with " + wrong.expected, wrong.received + " in " + r.describe(f)}
			}
			return fmt.Errorf("line %d: %w", e.line, err)
		}
	}
	return nil
}

// await takes frames in until something is so.
func (r *run) await(so func() bool, what string) error {
	patience := r.patience
	if r.starting() {
		patience *= startFactor
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for !so() {
		switch err := r.more(timer.C); {
		case errors.Is(err, errQuiet):
			return &failure{what, "nothing in time"}
		case errors.Is(err, errEnded):
			return &failure{what, "the end of the output" + r.howItEnded()}
		case err != nil:
			return err
		}
	}
	return nil
}

// items expects the numbered items A..B of a stream, in order.
func (r *run) items(s step) error {
	name, rest := takeLabel(s.text, r.names())
	var from, to int64
	if n, _ := fmt.Sscanf(rest, "%d..%d", &from, &to); n != 2 {
		return errors.New("want FROM..TO")
	}
	for n := from; n <= to; n++ {
		f, err := r.take(expectation{kinds: []string{"streamItem"}, label: name, timeout: r.patience})
		if err != nil {
			return err
		}
		if err := r.matches(f, []edit{{s.line, "payload.n", strconv.FormatInt(n, 10)}}); err != nil {
			return err
		}
	}
	return nil
}

// drain takes a stream to its end, replenishing credit, and expects its count.
func (r *run) drain(s step) error {
	name, rest := takeLabel(s.text, r.names())
	want, err := strconv.ParseInt(rest, 10, 64)
	if err != nil {
		return errors.New("want the number of items")
	}
	l, err := r.label(name)
	if err != nil {
		return err
	}
	for {
		f, err := r.take(expectation{kinds: []string{"streamItem", "streamEnd"}, label: name, timeout: r.patience})
		if err != nil {
			return err
		}
		if f.kind == "streamEnd" {
			if n := number(f.body, "itemCount"); n != want {
				return &failure{fmt.Sprintf("%d items", want), fmt.Sprint(n)}
			}
			return nil
		}
		if l.items < 8 || l.bytes < 64<<10 {
			if err := r.grant(l, 64, 4<<20, nil); err != nil {
				return err
			}
		}
	}
}

// terminal takes the frames of a request to its end, whichever that is.
func (r *run) terminal(s step) error {
	kinds := []string{"streamItem", "streamEnd", "progress", "cancelAck", "response", "error", "cancelled"}
	for {
		f, err := r.take(expectation{kinds: kinds, label: s.text, timeout: r.patience})
		if err != nil || slices.Contains(kinds[4:], f.kind) {
			return err
		}
	}
}

// fatal expects the connection's end: an error without a request, a status that
// is not 0.
func (r *run) fatal(s step) error {
	code, rest, _ := strings.Cut(s.text, " ")
	_ = rest
	f, err := r.take(expectation{kinds: []string{"error"}, label: connectionLabel, timeout: r.patience})
	if err != nil {
		return err
	}
	edits := append([]edit{
		{s.line, "severity", `"fatal"`}, {s.line, "retryable", "false"}, {s.line, "requestId", "null"}, {s.line, "operationId", "null"},
	}, s.edits...)
	if codes := strings.Split(code, "|"); len(codes) > 1 {
		edits = append(edits, edit{s.line, "code", `any-of ["` + strings.Join(codes, `","`) + `"]`})
	} else {
		edits = append(edits, edit{s.line, "code", quote(code)})
	}
	if err := r.matches(f, edits); err != nil {
		return err
	}
	return r.ended("nonzero")
}

// refuses expects a program that does not take its package: no byte of output, a
// reason on standard error, a status that is not 0.
func (r *run) refuses(step) error {
	if err := r.ensure(); err != nil {
		return err
	}
	if err := r.ended("nonzero"); err != nil {
		return err
	}
	if r.all.Len() > 0 {
		return &failure{"no output", fmt.Sprintf("%.200q", r.all.String())}
	}
	if strings.TrimSpace(r.stderr.String()) == "" {
		return &failure{"a reason on standard error", "nothing"}
	}
	return nil
}

// silence expects that nothing comes for a while, but for the types named.
func (r *run) silence(s step) error {
	fields := strings.Fields(s.text)
	if len(fields) == 0 {
		return errors.New("want a duration")
	}
	d, err := time.ParseDuration(fields[0])
	if err != nil {
		return err
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		for _, f := range r.pending {
			if !contains(fields[1:], f.kind) {
				return &failure{"nothing for " + d.String(), r.describe(f)}
			}
		}
		switch err := r.more(timer.C); {
		case errors.Is(err, errQuiet):
			return nil
		case errors.Is(err, errEnded):
			return &failure{"a program that waits", "the end of its output" + r.howItEnded()}
		case err != nil:
			return err
		}
	}
}
