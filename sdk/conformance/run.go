package conformance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// A run is one case under way.
type run struct {
	c        *Case
	command  []string
	dir      string   // the package
	own      *Package // nil: one of the corpus
	state    string   // SWITCHYARD_PLUGIN_STATE; the project's root in the call protocol
	patience time.Duration
	vars     variables
	ops      map[string]operation
	labels   map[string]*label // by name: the last request of that name
	requests map[string]*label // by requestId
	marks    map[string]time.Time

	p        *process // nil until something has to be sent
	stderr   tail
	frames   chan received           // closed at the end of the output
	stop     chan struct{}           // closed at the end of the case
	running  atomic.Pointer[process] // p, for whoever ends the case from outside
	pending  []*frame                // checked, and not yet asked for
	conn     connection
	all      strings.Builder // the text of every frame, for privacy
	counts   map[string]int  // how many frames of a type a label had
	trace    []string        // the last frames both ways, for the report
	finished bool            // the case has said how the process ends
	ending   bool            // the input is closed or the program refused: late frames say nothing
	private  []step          // the nowhere steps so far
	over     bool            // the program has ended
	step     step
	lastSize int64 // N of the last frame sent
	began    int   // bytes of all when the process started
}

// received is what the reader of the output found: a frame or a line, or why
// there is none.
type received struct {
	text []byte
	at   time.Time
	err  error
}

// A failure is what was expected and what came.
type failure struct{ expected, received string }

func (f *failure) Error() string { return "expected " + f.expected + ", received " + f.received }

const defaultLabel = "r"

// connection is what the runner knows of the connection that is open.
type connection struct {
	version  string // of helloAck; of hello before
	sent     uint64 // the last sequence sent
	got      uint64 // the last sequence received
	enabled  map[string]bool
	acked    bool              // helloAck has come
	maxFrame int               // what the program may send
	ids      map[string]bool   // messageIds received
	asked    map[string]string // messageIds sent: their type
	extra    map[string]bool   // types that may come although nothing on says so
}

// A label is one request.
type label struct {
	name                              string
	requestID, operationID, messageID string
	op                                operation
	payload                           string
	trace                             string // JSON
	items, bytes                      int64  // credit that the program has left
	overdrawn                         bool
	gotItems, gotBytes                int64 // of its stream, so far
	ended                             bool  // its streamEnd has come
	terminal                          string
	ourItems, ourBytes                int64 // credit that the runner has left
	sentItems, sentBytes              int64
	cancels                           map[string]bool // messageIds of cancel frames
}

func (r *run) reset() {
	r.conn = connection{version: "1.2", enabled: map[string]bool{}, ids: map[string]bool{}, asked: map[string]string{}, maxFrame: 8 << 20, extra: map[string]bool{}}
	r.pending = nil
	r.labels, r.requests = map[string]*label{}, map[string]*label{}
	r.counts = map[string]int{}
	r.finished, r.ending, r.began = false, false, r.all.Len()
}

// ensure starts the program if it is not running.
func (r *run) ensure() error {
	if r.p != nil {
		return nil
	}
	r.reset()
	p, err := start(r.command, r.dir, r.state, r.c, &r.stderr)
	if p != nil {
		r.p = p
		r.running.Store(p)
	}
	if err != nil {
		return err
	}
	r.frames = make(chan received, 16)
	go r.read(p, r.frames)
	return nil
}

// read passes on what the program writes until its output ends or the case does.
func (r *run) read(p *process, frames chan<- received) {
	defer close(frames)
	read := readFrame
	if r.c.Protocol == Call {
		read = lineReader()
	}
	for {
		text, err := read(p.out)
		if isEnd(err) {
			return
		}
		select {
		case frames <- received{text, time.Now(), err}:
		case <-r.stop:
			return
		}
		if err != nil {
			return
		}
	}
}

// do runs the steps of the case. What it returns says why the case failed.
func (r *run) do(steps []step) error {
	for _, s := range steps {
		r.step = s
		if err := verbs()[s.verb].do(r, s); err != nil {
			return err
		}
	}
	return nil
}

// settle ends the case: what came and was not asked for is wrong, and the
// program must end once its input does.
func (r *run) settle() error {
	if r.p == nil {
		return nil
	}
	r.step = step{line: 0, verb: "(end of the case)"}
	if err := r.orderly(); err != nil {
		return err
	}
	r.over = true
	for _, s := range r.private {
		r.step = s
		if err := r.nowhere(s); err != nil {
			return err
		}
	}
	return nil
}

// orderly holds the end that the case has not said anything about: nothing more
// comes, and the program exits with 0 when its input ends.
func (r *run) orderly() error {
	if r.finished {
		return nil
	}
	if err := r.poll(); err != nil {
		return err
	}
	for _, f := range r.pending {
		if !passing(f.kind) {
			return &failure{"no more frames", r.describe(f)}
		}
	}
	return r.exits("0")
}

// passing reports whether a frame may go unread.
func passing(kind string) bool { return kind == "progress" || kind == "flow" || kind == "heartbeat" }

// close ends the program's input and waits for its end; want is a status, "any"
// or "nonzero".
func (r *run) exits(want string) error {
	r.ending = true
	r.p.in.Close()
	return r.ended(want)
}

// exitTime is what a program has to exit, by the protocols.
const exitTime = 3 * time.Second

// startFactor is how many times longer than other frames the first one may take:
// starting an interpreter is no matter of the protocol.
const startFactor = 4

// starting reports whether the program has not written anything yet.
func (r *run) starting() bool {
	return r.conn.got == 0 && len(r.pending) == 0 && r.all.Len() == r.began
}

// ended waits for the program's end.
func (r *run) ended(want string) error {
	// 3 s of the 5 s that a frame may take; more where the user has more patience.
	limit := min(r.patience, max(exitTime, r.patience*exitTime/defaultPatience)) + 200*time.Millisecond
	if r.starting() {
		limit *= startFactor
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	frames := r.frames
	for {
		select {
		case <-r.p.exited:
			if err := r.rest(); err != nil && !r.ending {
				return err
			}
			r.finished = true
			return r.status(want)
		case f, ok := <-frames:
			if !ok {
				frames = nil
				continue
			}
			if err := r.accept(f); err != nil && !r.ending {
				return err
			}
		case <-timer.C:
			return &failure{"the program to exit within 3s", "nothing: it still runs"}
		}
	}
}

// rest takes what the program wrote before its end.
func (r *run) rest() error {
	timer := time.NewTimer(time.Second) // a grandchild may hold the output
	defer timer.Stop()
	for {
		select {
		case f, ok := <-r.frames:
			if !ok {
				return nil
			}
			if err := r.accept(f); err != nil {
				return err
			}
		case <-timer.C:
			return nil
		}
	}
}

func (r *run) status(want string) error {
	got := r.p.state.String()
	code := r.p.state.ExitCode()
	ok := false
	switch want {
	case "any":
		ok = true
	case "nonzero":
		ok = code > 0
	default:
		ok = fmt.Sprint(code) == want
	}
	if !ok {
		if want == "nonzero" {
			want = "a status that is not 0"
		} else {
			want = "status " + want
		}
		return &failure{"the program to exit with " + want, got}
	}
	return nil
}

// poll accepts what has arrived already.
func (r *run) poll() error {
	for {
		select {
		case f, ok := <-r.frames:
			if !ok {
				return nil
			}
			if err := r.accept(f); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// errQuiet says that nothing came in time, errEnded that nothing can come.
var (
	errQuiet = errors.New("nothing came in time")
	errEnded = errors.New("the output ended")
)

// more accepts the next frame that comes before the time is up.
func (r *run) more(timer <-chan time.Time) error {
	select {
	case f, ok := <-r.frames:
		if !ok {
			return errEnded
		}
		return r.accept(f)
	default:
	}
	select {
	case f, ok := <-r.frames:
		if !ok {
			return errEnded
		}
		return r.accept(f)
	case <-timer:
		return errQuiet
	}
}

// accept checks what came against what is true of every frame, and keeps it.
func (r *run) accept(got received) error {
	if got.err != nil {
		return &failure{"frames on the program's output", got.err.Error()}
	}
	r.all.Write(got.text)
	r.all.WriteByte('\n')
	if r.c.Protocol == Call {
		r.traced("<-", string(got.text))
		f, err := r.checkLine(got)
		if f != nil {
			r.pending = append(r.pending, f)
		}
		return err
	}
	f, err := r.checkFrame(got)
	if f != nil {
		r.traced("<-", string(f.text))
	}
	if err != nil {
		return &failure{"frames as every frame must be", err.Error()}
	}
	if f.kind == "heartbeat" && !r.conn.extra["unanswered"] {
		nonce := at(f.body, "nonce")
		if err := r.send("heartbeatAck", []edit{{path: "nonce", text: string(nonce)}, {path: "@causationId", text: string(f.envelope["messageId"])}}, nil); err != nil {
			return err
		}
	}
	r.pending = append(r.pending, f)
	return nil
}

const (
	traceLength = 12
	traceWidth  = 600
)

func (r *run) traced(arrow, text string) {
	if len(text) > traceWidth {
		text = strings.ToValidUTF8(text[:traceWidth], "") + fmt.Sprintf("… (%d bytes)", len(text))
	}
	r.trace = append(r.trace, arrow+" "+text)
	if len(r.trace) > traceLength {
		r.trace = r.trace[1:]
	}
}

// stateFiles calls visit for each file below the state directory.
func (r *run) stateFiles(visit func(name string, text []byte)) error {
	return filepath.WalkDir(r.state, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil {
			name, _ := filepath.Rel(r.state, path)
			visit(filepath.ToSlash(name), text)
		}
		return nil
	})
}
