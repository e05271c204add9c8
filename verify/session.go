package verify

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// AnswerTime bounds one answer, but for those that have bounds of their own.
const AnswerTime = time.Minute

// closeTime is how long a worker may take to end after its last answer.
const closeTime = 2 * time.Second

// keepStderr is how much of a worker's last words an error repeats, in bytes.
const keepStderr = 2 << 10

// Broken says that the worker did not do its part: it could not be started, is
// another build, died, was too slow, or answered something that was not asked. No
// fact of such a worker counts.
type Broken struct {
	Path   string
	Reason string
	Stderr string // its last words
	Err    error  // may be nil
}

func (e *Broken) Error() string {
	text := "the verify worker " + e.Path + " " + e.Reason
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *Broken) Unwrap() error { return e.Err }

// A Session is a running worker. It answers one request after the other; its
// methods may be called from several goroutines.
type Session struct {
	path    string
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	pipe    io.Closer
	stderr  tail

	gone   chan struct{} // closed when the worker was waited for
	mu     sync.Mutex
	broken error // why nothing more is asked
}

// Start starts the worker with an empty environment, in the directory where it
// lies, and compares its build with this program's. The end of ctx kills it.
func (w *Worker) Start(ctx context.Context) (*Session, error) {
	s := &Session{path: w.path, command: exec.CommandContext(ctx, w.path), gone: make(chan struct{})}
	s.command.Env = []string{}
	s.command.Dir = "/"
	s.command.WaitDelay = time.Second
	supervise(s.command)
	s.command.Stderr = &s.stderr
	var err error
	if s.in, err = s.command.StdinPipe(); err != nil {
		return nil, s.fail("cannot be started", err)
	}
	out, err := s.command.StdoutPipe()
	if err != nil {
		return nil, s.fail("cannot be started", err)
	}
	s.pipe, s.out = out, bufio.NewReaderSize(out, 32<<10)
	if err := start(s.command, s.gone); err != nil {
		return nil, s.fail("cannot be started", err)
	}
	if err := s.greet(ctx, w); err != nil {
		s.kill()
		s.Close()
		return nil, err
	}
	return s, nil
}

// greet makes sure that what runs is what was looked at, and of this build.
func (s *Session) greet(ctx context.Context, w *Worker) error {
	if now, err := os.Lstat(w.path); err != nil || !os.SameFile(now, w.info) {
		return s.fail("was replaced while it was started", err)
	}
	var hello Hello
	if err := s.read(ctx, &hello); err != nil {
		return s.fail("does not begin as it should", err)
	}
	if hello.Protocol != Protocol || hello.Build != Build() {
		return s.fail(fmt.Sprintf("is another build (%s) than this program (%s)", hello.Build, Build()), nil)
	}
	return nil
}

// Bundle asks what a Sigstore bundle proves. The error is a *Refusal if it proves
// nothing, else a *Broken.
func (s *Session) Bundle(ctx context.Context, r BundleRequest) (*Facts, error) {
	answer, err := s.ask(ctx, Request{Bundle: &r})
	if err != nil {
		return nil, err
	}
	f := answer.Facts
	if f == nil || f.Artifact != r.Artifact || f.Kind != r.Kind || f.Bundle != digest.Of(r.Document) {
		return nil, s.breakOff("answered about something else", nil)
	}
	return f, nil
}

// Sign asks for a bundle over an artifact. The error is as that of Bundle.
func (s *Session) Sign(ctx context.Context, r SignRequest) (*Signed, error) {
	answer, err := s.ask(ctx, Request{Sign: &r})
	if err != nil {
		return nil, err
	}
	if answer.Signed == nil {
		return nil, s.breakOff("answered something else", nil)
	}
	return answer.Signed, nil
}

// Keyless asks for a bundle under a certificate; the worker opens connections for it. The
// error is as that of Bundle.
func (s *Session) Keyless(ctx context.Context, r KeylessRequest) (*Signed, error) {
	answer, err := s.askFor(ctx, Request{Keyless: &r}, KeylessTime)
	if err != nil {
		return nil, err
	}
	out := answer.Signed
	if out == nil || out.Facts == nil || out.Facts.Kind != Signature || out.Facts.Artifact != r.Artifact ||
		out.Facts.Bundle != digest.Of(out.Bundle) || out.Facts.Signer != out.Signer {
		return nil, s.breakOff("answered about something else", nil)
	}
	return out, nil
}

// SBOM asks what an SPDX document says. The error is a *Refusal if it is none or breaks
// a rule, else a *Broken.
func (s *Session) SBOM(ctx context.Context, document []byte) (*SBOMFacts, error) {
	answer, err := s.ask(ctx, Request{SBOM: &SBOMRequest{Document: document}})
	if err != nil {
		return nil, err
	}
	if answer.SBOM == nil || answer.SBOM.Document != digest.Of(document) {
		return nil, s.breakOff("answered about something else", nil)
	}
	return answer.SBOM, nil
}

// NewKey asks for a new key pair. The error is as that of Bundle.
func (s *Session) NewKey(ctx context.Context, r NewKeyRequest) (*KeyPair, error) {
	return s.key(ctx, Request{NewKey: &r})
}

// Key asks what a key is. The error is as that of Bundle.
func (s *Session) Key(ctx context.Context, r KeyRequest) (*KeyPair, error) {
	return s.key(ctx, Request{Key: &r})
}

func (s *Session) key(ctx context.Context, r Request) (*KeyPair, error) {
	answer, err := s.ask(ctx, r)
	if err != nil {
		return nil, err
	}
	if answer.Key == nil {
		return nil, s.breakOff("answered something else", nil)
	}
	return answer.Key, nil
}

// ask sends one request and reads its answer.
func (s *Session) ask(ctx context.Context, r Request) (*Response, error) {
	return s.askFor(ctx, r, AnswerTime)
}

// askFor is ask with another bound than AnswerTime.
func (s *Session) askFor(ctx context.Context, r Request, most time.Duration) (*Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("no answer within %v", most))
	defer cancel()
	nonce, err := s.send(ctx, r)
	if err != nil {
		return nil, err
	}
	return s.hear(ctx, nonce)
}

// send sends one request under a new nonce.
func (s *Session) send(ctx context.Context, r Request) (nonce string, err error) {
	if s.broken != nil {
		return "", s.broken
	}
	var random [16]byte
	rand.Read(random[:])
	r.Nonce = hex.EncodeToString(random[:])
	text, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	if len(text) > MaxLine {
		return "", &Refusal{Code: CodeRequestMalformed, Message: fmt.Sprintf("a request of more than %d bytes", MaxLine)}
	}
	// A worker that does not read is as bad as one that does not answer.
	stop := context.AfterFunc(ctx, s.kill)
	defer stop()
	if _, err := s.in.Write(append(text, '\n')); err != nil {
		return "", s.lost(ctx, err)
	}
	return r.Nonce, nil
}

// hear reads one answer to the request with that nonce.
func (s *Session) hear(ctx context.Context, nonce string) (*Response, error) {
	var answer Response
	if err := s.read(ctx, &answer); err != nil {
		return nil, s.lost(ctx, err)
	}
	if answer.Nonce != nonce {
		return nil, s.giveUp("answered another request", nil)
	}
	if answer.Error != nil {
		return nil, answer.Error
	}
	return &answer, nil
}

// lost says why the exchange broke off: the end of ctx comes first.
func (s *Session) lost(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return s.giveUp("died or did not answer", err)
}

func (s *Session) breakOff(reason string, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.giveUp(reason, err)
}

// giveUp ends the worker; nothing more is asked.
func (s *Session) giveUp(reason string, err error) error {
	s.kill()
	s.broken = s.fail(reason, err)
	return s.broken
}

func (s *Session) fail(reason string, err error) *Broken {
	return &Broken{Path: s.path, Reason: reason, Stderr: s.stderr.String(), Err: err}
}

// read reads one line into v.
func (s *Session) read(ctx context.Context, v any) error {
	stop := context.AfterFunc(ctx, s.kill)
	defer stop()
	var line []byte
	for {
		part, err := s.out.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > MaxLine:
			return fmt.Errorf("an answer of more than %d bytes", MaxLine)
		case err == nil:
			return json.Unmarshal(bytes.TrimSuffix(line, []byte{'\n'}), v, json.RejectUnknownMembers(true))
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
}

// Close lets the worker end, ends what it left behind, and waits for it. It is to be
// called once.
func (s *Session) Close() {
	defer close(s.gone)
	s.in.Close()
	late := time.AfterFunc(closeTime, s.kill)
	defer late.Stop()
	io.Copy(io.Discard, s.out) // until it and whoever has its output are gone
	s.kill()                   // its number is its own until it is waited for
	s.pipe.Close()
	s.command.Wait()
}

// A tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - keepStderr; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
