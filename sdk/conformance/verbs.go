package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// A verb is what a step can be.
type verb struct {
	protocol Protocol // "" for both
	edits    bool     // takes indented lines
	matches  bool     // and they are matchers
	check    func(*parser, *step) error
	do       func(*run, step) error
}

// verbs returns what the steps of a case can be, by name.
func verbs() map[string]verb {
	verbTable.once.Do(func() { verbTable.all = allVerbs() })
	return verbTable.all
}

// verbTable is no lazy: repeat runs other verbs, so its initial value would name itself.
var verbTable struct {
	once sync.Once
	all  map[string]verb
}

func allVerbs() map[string]verb {
	return map[string]verb{
		// The session protocol.
		"ready":        {Session, true, false, nil, (*run).ready},
		"send":         {Session, true, false, checkKindKnown, func(r *run, s step) error { return r.send(s.text, s.edits, nil) }},
		"call":         {Session, true, false, checkCall, (*run).call},
		"cancel":       {Session, true, false, nil, (*run).cancel},
		"item":         {Session, true, false, needsText, (*run).item},
		"finish":       {Session, true, false, nil, (*run).finish},
		"credit":       {Session, true, false, needsText, (*run).credit},
		"frame":        {Session, false, false, nil, (*run).frame},
		"expect":       {Session, true, true, checkExpect, (*run).expect},
		"items":        {Session, false, false, needsText, (*run).items},
		"drain":        {Session, false, false, needsText, (*run).drain},
		"terminal":     {Session, false, false, needsText, (*run).terminal},
		"fatal":        {Session, true, true, needsText, (*run).fatal},
		"refuses":      {Session, false, false, nil, (*run).refuses},
		"received":     {Session, false, false, needsText, (*run).receivedSoMany},
		"unanswered":   {Session, false, false, nil, func(r *run, _ step) error { r.conn.extra["unanswered"] = true; return nil }},
		"start":        {Session, false, false, nil, func(r *run, _ step) error { return r.ensure() }},
		"restart":      {Session, false, false, nil, (*run).restart},
		"next-version": {Session, false, false, needsText, func(r *run, s step) error { r.conn.version = s.text; return nil }},

		// The call protocol.
		"initialize": {Call, false, false, nil, (*run).initialize},
		"rpc":        {Call, false, false, needsText, (*run).rpc},
		"line":       {Call, false, false, nil, (*run).line},
		"reply":      {Call, true, true, nil, (*run).reply},
		"replies":    {Call, false, false, needsText, (*run).replies},

		// Both.
		"bytes":     {"", false, false, needsText, (*run).bytes},
		"chunks":    {"", false, false, needsNumber, (*run).chunks},
		"close":     {"", false, false, nil, func(r *run, _ step) error { r.ending = true; return r.p.in.Close() }},
		"kill":      {"", false, false, nil, (*run).kill},
		"terminate": {"", false, false, nil, func(r *run, _ step) error { r.ending = true; return terminate(r.p.cmd) }},
		"exit":      {"", false, false, checkExit, func(r *run, s step) error { return r.ended(s.text) }},
		"close-exit": {"", false, false, checkExit, func(r *run, s step) error {
			if err := r.poll(); err != nil {
				return err
			}
			return r.exits(s.text)
		}},
		"silence": {"", false, false, needsText, (*run).silence},
		"wait":    {"", false, false, needsDuration, (*run).wait},
		"repeat":  {"", false, false, needsText, (*run).repeat},
		"mark":    {"", false, false, needsText, func(r *run, s step) error { r.marks[s.text] = time.Now(); return nil }},
		"since":   {"", false, false, needsText, (*run).since},
		"file":    {"", false, false, needsText, (*run).file},
		"put":     {"", false, false, needsText, (*run).put},
		"seen":    {"", false, false, needsText, (*run).seen},
		"nowhere": {"", false, false, needsText, (*run).nowhere},
		"memory":  {"", false, false, needsNumber, (*run).memory},
		"set":     {"", false, false, needsText, (*run).assign},
		"check":   {"", true, true, nil, (*run).checkVariables},
	}
}

func needsText(_ *parser, s *step) error {
	if s.text == "" {
		return errors.New("something must follow")
	}
	return nil
}

func needsNumber(_ *parser, s *step) error {
	if n, err := strconv.Atoi(s.text); err != nil || n < 1 {
		return fmt.Errorf("%q is no number above 0", s.text)
	}
	return nil
}

func needsDuration(_ *parser, s *step) error {
	_, err := time.ParseDuration(s.text)
	return err
}

func checkKindKnown(_ *parser, s *step) error {
	if _, ok := bodies.get()[s.text]; !ok {
		return fmt.Errorf("%q is no message type", s.text)
	}
	return nil
}

func checkCall(p *parser, s *step) error {
	name, rest := declared(s.text)
	if rest == "" {
		return errors.New("want [LABEL:] OPERATION [PAYLOAD]")
	}
	if !slices.Contains(p.labels, name) {
		p.labels = append(p.labels, name)
	}
	return nil
}

func checkExpect(p *parser, s *step) error {
	kinds, rest, _ := strings.Cut(s.text, " ")
	for k := range strings.SplitSeq(kinds, "|") {
		if _, ok := shapes.get()[k]; !ok {
			return fmt.Errorf("%q is no message type that a program sends", k)
		}
	}
	if kinds == "error" && strings.Contains(rest, " ") {
		if first, _, _ := strings.Cut(rest, " "); first != connectionLabel && !slices.Contains(p.labels, first) {
			return fmt.Errorf("no call is named %q", first)
		}
	}
	return nil
}

func checkExit(_ *parser, s *step) error {
	if s.text == "any" || s.text == "nonzero" {
		return nil
	}
	if _, err := strconv.Atoi(s.text); err != nil {
		return errors.New("want a status, \"nonzero\" or \"any\"")
	}
	return nil
}

// ready runs the handshake: hello, helloAck, init, initAck. Its lines change the
// frames sent: hello.… and init.…
func (r *run) ready(s step) error {
	sent := map[string][]edit{}
	for _, e := range s.edits {
		which, path, _ := strings.Cut(e.path, ".")
		if which != "hello" && which != "init" {
			return fmt.Errorf("line %d: want hello.… or init.…", e.line)
		}
		sent[which] = append(sent[which], edit{e.line, path, e.text})
	}
	for _, pair := range [][2]string{{"hello", "helloAck"}, {"init", "initAck"}} {
		if err := r.send(pair[0], sent[pair[0]], nil); err != nil {
			return err
		}
		if _, err := r.take(expectation{kinds: []string{pair[1]}, label: connectionLabel, timeout: r.patience}); err != nil {
			return err
		}
	}
	return nil
}

// frame sends a text as a frame, whatever it is.
func (r *run) frame(s step) error {
	text, err := r.vars.expand(s.text)
	if err != nil {
		return err
	}
	r.traced("->", text)
	return r.write(framed(text))
}

func (r *run) bytes(s step) error {
	text, err := r.vars.expand(s.text)
	if err != nil {
		return err
	}
	r.traced("->", fmt.Sprintf("(bytes) %.200q", text))
	return r.write([]byte(text))
}

func (r *run) chunks(s step) error {
	if err := r.ensure(); err != nil {
		return err
	}
	r.p.chunks, _ = strconv.Atoi(s.text)
	return nil
}

// kill ends the process as a crash of the machine's kind would.
func (r *run) kill(step) error {
	if r.p == nil {
		return errors.New("nothing runs")
	}
	r.p.end()
	r.finished = true
	return nil
}

// restart ends the process, unless it has ended, and starts it anew on the same
// package and state.
func (r *run) restart(s step) error {
	if r.p != nil {
		if !r.finished {
			if err := r.exits("any"); err != nil {
				return err
			}
		}
		r.p.end()
		r.p = nil
	}
	return r.ensure()
}

// wait leaves the program alone and its output unread.
func (r *run) wait(s step) error {
	d, err := time.ParseDuration(s.text)
	if err == nil {
		time.Sleep(d)
	}
	return err
}

func (r *run) repeat(s step) error {
	text, err := r.vars.expand(s.text)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 1<<20 {
		return fmt.Errorf("%q is no number of rounds", text)
	}
	for i := range n {
		r.vars["i"] = strconv.Itoa(i + 1)
		if err := r.do(s.block); err != nil {
			return fmt.Errorf("round %d: %w", i+1, err)
		}
	}
	return nil
}

// since holds the time since a mark to a bound: NAME below|above DURATION.
func (r *run) since(s step) error {
	var name, how, text string
	if n, _ := fmt.Sscan(s.text, &name, &how, &text); n != 3 {
		return errors.New("want NAME below|above DURATION")
	}
	at, ok := r.marks[name]
	d, err := time.ParseDuration(text)
	if !ok || err != nil {
		return fmt.Errorf("no mark %s, or no duration %s", name, text)
	}
	if took := time.Since(at); (how == "below") != (took < d) {
		return &failure{"a time " + how + " " + text, took.Round(time.Millisecond).String()}
	}
	return nil
}

// receivedSoMany bounds how many frames of a type a request had: TYPE [LABEL]
// below|above N.
func (r *run) receivedSoMany(s step) error {
	kind, rest, _ := strings.Cut(s.text, " ")
	name, rest := takeLabel(rest, r.names())
	var how string
	var n int
	if got, _ := fmt.Sscan(rest, &how, &n); got != 2 {
		return errors.New("want TYPE [LABEL] below|above N")
	}
	if err := r.poll(); err != nil {
		return err
	}
	if got := r.counts[name+" "+kind]; how == "below" && got >= n || how == "above" && got <= n {
		return &failure{fmt.Sprintf("%s %d frames of %s", how, n, kind), strconv.Itoa(got)}
	}
	return nil
}

// file holds a file of the state directory: NAME absent|present|lines N|text
// "…"|contains "…"|canonical.
func (r *run) file(s step) error {
	name, rest, _ := strings.Cut(s.text, " ")
	how, value, _ := strings.Cut(strings.TrimSpace(rest), " ")
	text, err := os.ReadFile(filepath.Join(r.state, filepath.FromSlash(name)))
	if how == "absent" {
		if !errors.Is(err, os.ErrNotExist) {
			return &failure{name + " absent", fmt.Sprintf("%.200q", text)}
		}
		return nil
	}
	if errors.Is(err, os.ErrNotExist) && how == "lines" {
		err = nil
	}
	if err != nil {
		return &failure{name + " " + rest, "no such file"}
	}
	value, err = r.vars.expand(value)
	if err != nil {
		return err
	}
	ok := false
	switch how {
	case "present":
		ok = true
	case "lines":
		ok = strconv.Itoa(strings.Count(string(text), "\n")) == value
	case "text", "contains":
		var want string
		if err := json.Unmarshal([]byte(value), &want); err != nil {
			return err
		}
		ok = string(text) == want || how == "contains" && strings.Contains(string(text), want)
	case "canonical":
		canonical, err := digest.Canonical(text)
		ok = err == nil && string(canonical) == strings.TrimSuffix(string(text), "\n")
	default:
		return fmt.Errorf("%q is nothing that a file can be held to", how)
	}
	if !ok {
		return &failure{name + " " + rest, fmt.Sprintf("%.200q", text)}
	}
	return nil
}

// put writes a file of the state directory.
func (r *run) put(s step) error {
	name, value, _ := strings.Cut(s.text, " ")
	text, err := r.vars.expand(value)
	if err != nil {
		return err
	}
	path := filepath.Join(r.state, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

// nowhere holds that a text was seen in none of the places named, separated by
// commas: frames, stderr, state (which is every file of it, and its name).
func (r *run) nowhere(s step) error {
	if !r.over {
		r.private = append(r.private, s) // once more when everything has been written
	}
	places, rest, _ := strings.Cut(s.text, " ")
	text, err := r.vars.expand(rest)
	if err != nil {
		return err
	}
	text = strings.Trim(text, `"`)
	if text == "" {
		return errors.New("want PLACES TEXT")
	}
	if err := r.poll(); err != nil {
		return err
	}
	for place := range strings.SplitSeq(places, ",") {
		found := ""
		switch place {
		case "frames":
			if strings.Contains(r.all.String(), text) {
				found = "in a frame"
			}
		case "stderr":
			if strings.Contains(r.stderr.String(), text) {
				found = "on standard error"
			}
		case "state":
			err := r.stateFiles(func(name string, content []byte) {
				if strings.Contains(name, text) || strings.Contains(string(content), text) {
					found = "in state/" + name
				}
			})
			if err != nil {
				return err
			}
		default:
			return fmt.Errorf("%q is no place", place)
		}
		if found != "" {
			return &failure{fmt.Sprintf("%q nowhere", text), found}
		}
	}
	return nil
}

// seen holds that a text was in a frame.
func (r *run) seen(s step) error {
	text, err := r.vars.expand(s.text)
	if err != nil {
		return err
	}
	if text = strings.Trim(text, `"`); !strings.Contains(r.all.String(), text) {
		return &failure{fmt.Sprintf("a frame with %q", text), "none"}
	}
	return nil
}

// memory bounds what the process ever had resident, in MiB; a system that does
// not tell passes.
func (r *run) memory(s step) error {
	limit, _ := strconv.Atoi(s.text)
	if got, known := r.p.memory(); known && got > int64(limit)<<20 {
		return &failure{fmt.Sprintf("at most %d MiB of memory", limit), fmt.Sprintf("%d MiB", got>>20)}
	}
	return nil
}

// assign gives a variable a value: NAME TEXT.
func (r *run) assign(s step) error {
	name, text, _ := strings.Cut(s.text, " ")
	value, err := r.vars.expand(text)
	r.vars[name] = value
	return err
}

// checkVariables holds variables to matchers; a line is NAME MATCHER.
func (r *run) checkVariables(s step) error {
	for _, e := range s.edits {
		m, err := parseMatcher(e.text)
		if err != nil {
			return err
		}
		value, ok := r.vars[e.path]
		if !ok {
			return fmt.Errorf("$%s is not known here", e.path)
		}
		if err := m.apply(r.vars, e.path, json.RawMessage(value)); err != nil {
			return err
		}
	}
	return nil
}

func isEnd(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) || errors.Is(err, io.ErrClosedPipe)
}
