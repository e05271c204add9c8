//go:build unix

package worker

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
	"github.com/switchyard-plugins/switchyard/verify/worker/sigstoretest"
)

// TestRequests holds what is answered to lines that are no good requests.
func TestRequests(t *testing.T) {
	key, err := json.Marshal(pair(t, verify.ECDSA).Public)
	if err != nil {
		t.Fatal(err)
	}
	for name, line := range map[string]string{
		"empty":                       ``,
		"no JSON":                     `hello`,
		"no object":                   `[]`,
		"null":                        `null`,
		"nothing is asked":            `{"nonce":"n"}`,
		"two things are asked":        `{"nonce":"n","key":{"pem":` + string(key) + `},"newKey":{"algorithm":"ed25519"}}`,
		"an unknown member":           `{"nonce":"n","key":{"pem":` + string(key) + `},"trust":true}`,
		"an unknown member, below":    `{"nonce":"n","key":{"pem":` + string(key) + `,"trust":true}}`,
		"a member in another case":    `{"nonce":"n","Key":{"pem":` + string(key) + `}}`,
		"a member twice":              `{"nonce":"n","nonce":"m","key":{"pem":` + string(key) + `}}`,
		"two documents":               `{"nonce":"n","key":{"pem":` + string(key) + `}}{}`,
		"bytes that are no text":      "{\"nonce\":\"\xff\",\"key\":{\"pem\":" + string(key) + `}}`,
		"a document that is no bytes": `{"nonce":"n","bundle":{"kind":"signature","artifact":"` + string(digestOfNothing) + `","document":"?","now":"2026-01-01T00:00:00Z"}}`,
		"a time that is none":         `{"nonce":"n","bundle":{"kind":"signature","artifact":"` + string(digestOfNothing) + `","document":"","now":"today"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			out := answer([]byte(line), io.Discard)
			if out.Error == nil || out.Error.Code != verify.CodeRequestMalformed {
				t.Errorf("got %+v", out)
			}
			if out.Facts != nil || out.Key != nil || out.Signed != nil {
				t.Errorf("an answer beside the refusal: %+v", out)
			}
		})
	}
	if out := answer([]byte(`{"nonce":"n","key":{"pem":`+string(key)+`}}`), io.Discard); out.Error != nil || out.Nonce != "n" || out.Key == nil {
		t.Errorf("a good one: %+v", out)
	}
	if out := answer([]byte(`{"nonce":"n","key":{"pem":"x"}}`), io.Discard); out.Nonce != "n" || out.Error == nil || out.Error.Code != verify.CodeKeyMalformed {
		t.Errorf("a refusal does not repeat the nonce: %+v", out)
	}
}

// TestMessagesAreBounded holds that a refusal does not repeat a whole document, and
// can be sent whatever it quotes.
func TestMessagesAreBounded(t *testing.T) {
	s := signWith(t, pair(t, verify.ECDSA), "an archive")
	long := strings.Repeat("é!", 1<<20)
	out := perform(verify.Request{Bundle: &verify.BundleRequest{Kind: verify.Signature, Artifact: digest.Of(s.artifact),
		Document: replaced(t, s.document, `"signature":"`, `"signature":"`+long)}}, nil)
	if out.Error == nil || out.Error.Code != verify.CodeBundleMalformed || len(out.Error.Message) > maxMessage+8 {
		t.Fatalf("%+v", out.Error)
	}
	for _, text := range []string{"\xff", strings.Repeat("x", maxMessage-1) + "é"} {
		if err := write(io.Discard, verify.Response{Error: refuse(verify.CodeKeyMalformed, "%s", text)}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// program builds the worker, once for all tests.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "switchyard-verify-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, verify.WorkerName)
	c := exec.Command("go", "build", "-buildvcs=false", "-o", path, "./switchyard-verify")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := program(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// A running is the built worker, talked to by lines.
type running struct {
	t       *testing.T
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	stderr  bytes.Buffer
}

// run starts the built worker, under another program where one is named.
func run(t *testing.T, under ...string) *running {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	args := append(under, path)
	r := &running{t: t, command: exec.Command(args[0], args[1:]...)}
	r.command.Env, r.command.Stderr = []string{}, &r.stderr
	if r.in, err = r.command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := r.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.out = bufio.NewReader(out)
	if err := r.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.command.Process.Kill(); r.command.Wait() })
	var hello verify.Hello
	r.read(&hello)
	if hello.Protocol != verify.Protocol || hello.Build != "devel" {
		t.Fatalf("it begins with %+v", hello)
	}
	return r
}

func (r *running) read(v any) {
	r.t.Helper()
	line, err := r.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, v)
	}
	if err != nil {
		r.t.Fatalf("read %q: %v\n%s", line, err, r.stderr.String())
	}
}

func (r *running) ask(request verify.Request) verify.Response {
	r.t.Helper()
	text, err := json.Marshal(request)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.in.Write(append(text, '\n')); err != nil {
		r.t.Fatal(err)
	}
	var out verify.Response
	r.read(&out)
	if out.Nonce != request.Nonce {
		r.t.Fatalf("the nonce is %q, not %q", out.Nonce, request.Nonce)
	}
	return out
}

// ends returns how the worker ends when nothing more comes.
func (r *running) ends() (code int, stderr string) {
	r.t.Helper()
	r.in.Close()
	io.Copy(io.Discard, r.out)
	err := r.command.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.t.Fatal(err)
	}
	return r.command.ProcessState.ExitCode(), r.stderr.String()
}

// TestRun holds that one process answers many requests, refusals between them, and
// ends with its input.
func TestRun(t *testing.T) {
	r := run(t)
	s := signWith(t, pair(t, verify.Ed25519), "an archive")
	good, bad := s.asks(), s.asks()
	bad.Keys = nil
	for i := range 100 {
		if out := r.ask(verify.Request{Nonce: fmt.Sprint("good ", i), Bundle: &good}); out.Error != nil || out.Facts.Signer.Key != s.ID {
			t.Fatalf("%+v", out)
		}
		if out := r.ask(verify.Request{Nonce: fmt.Sprint("bad ", i), Bundle: &bad}); out.Error == nil || out.Error.Code != verify.CodeKeyUnknown || out.Facts != nil {
			t.Fatalf("%+v", out)
		}
	}
	if out := r.ask(verify.Request{Nonce: "s", Sign: &verify.SignRequest{Artifact: digest.Of(s.artifact), Path: s.path, Key: s.Private}}); out.Signed == nil {
		t.Errorf("%+v", out)
	}
	if code, stderr := r.ends(); code != 0 || stderr != "" {
		t.Errorf("it ended with %d: %s", code, stderr)
	}
}

// TestKeylessInTheWorker holds that the worker's own limits and empty environment leave it
// what a signature under a certificate needs.
func TestKeylessInTheWorker(t *testing.T) {
	l := newLocal(t)
	r := run(t)
	for i := range 3 {
		request := l.asks()
		request.Timestamp = l.server.URL + sigstoretest.TimestampPath
		out := r.ask(verify.Request{Nonce: fmt.Sprint(i), Keyless: &request})
		if out.Error != nil || out.Signed.Signer.Identity != somebody || len(out.Signed.Facts.Times) != 2 {
			t.Fatalf("%+v", out)
		}
		request.Network.Roots = ""
		if out = r.ask(verify.Request{Nonce: fmt.Sprint("not ", i), Keyless: &request}); out.Error == nil || out.Error.Code != verify.CodeNetworkTLS {
			t.Errorf("%+v", out)
		}
	}
	if code, stderr := r.ends(); code != 0 || stderr != "" {
		t.Errorf("it ended with %d: %s", code, stderr)
	}
}

// TestHalfARequest holds that a line without an end is not answered: who wrote it died.
func TestHalfARequest(t *testing.T) {
	r := run(t)
	if _, err := io.WriteString(r.in, `{"nonce":"n","newKey":{"algorithm":"ed25519"}}`); err != nil {
		t.Fatal(err)
	}
	r.in.Close()
	rest, err := io.ReadAll(r.out)
	if err != nil || len(rest) > 0 {
		t.Errorf("answered %q, %v", rest, err)
	}
}

// TestLongLine holds that a request has a bound.
func TestLongLine(t *testing.T) {
	r := run(t)
	block := bytes.Repeat([]byte("a"), 1<<20)
	for range verify.MaxLine>>20 + 1 {
		if _, err := r.in.Write(block); err != nil {
			break // it does not read on
		}
	}
	if code, stderr := r.ends(); code != 1 || !strings.Contains(stderr, "a request of more than") {
		t.Errorf("it ended with %d: %s", code, stderr)
	}
}

// TestLimits holds what the worker denies itself before it reads anything.
func TestLimits(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the limits of a process are read from /proc")
	}
	r := run(t)
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", r.command.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{
		{"Max cpu time", "120", "120"}, {"Max file size", "0", "0"}, {"Max core file size", "0", "0"},
		{"Max open files", "64", "64"}, {"Max address space", "4294967296", "4294967296"},
	} {
		found := false
		for line := range strings.Lines(string(text)) {
			if rest, ok := strings.CutPrefix(line, want[0]); ok {
				f := strings.Fields(rest)
				found = f[0] == want[1] && f[1] == want[2]
			}
		}
		if !found {
			t.Errorf("%v: %s", want, text)
		}
	}
}

// withoutNetwork is what runs a program where there is no network at all.
func withoutNetwork(t *testing.T) []string {
	t.Helper()
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Skip("there is no unshare")
	}
	under := []string{unshare, "--net"}
	if os.Geteuid() != 0 {
		under = []string{unshare, "--user", "--map-root-user", "--net"}
	}
	if out, err := exec.Command(under[0], append(under[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("no network namespace can be made here: %v: %s", err, out)
	}
	return under
}

// TestOffline holds that the worker proves the conformance suite's good bundles, and
// all that is made here, where there is no network at all.
func TestOffline(t *testing.T) {
	under := withoutNetwork(t)
	r := run(t, under...)
	n := 0
	prove := func(name string, request verify.BundleRequest) {
		t.Helper()
		n++
		if out := r.ask(verify.Request{Nonce: name, Bundle: &request}); out.Error != nil {
			t.Errorf("%s: %v", name, out.Error)
		}
	}
	for _, algorithm := range algorithms {
		prove(string(algorithm), signWith(t, pair(t, algorithm), "an archive").asks())
	}
	a := newAuthority(t)
	artifact := []byte("an archive")
	prove("certificate", a.asks(verify.Signature, artifact, a.document(a.signs(artifact, a.now.Add(time.Minute)))))
	prove("provenance", a.asks(verify.Provenance, artifact, a.document(a.attests(inToto(artifact, slsa1, predicate1), a.now.Add(time.Minute)))))

	good := 0
	files, err := filepath.Glob(filepath.Join(corpus, "*", "bundle.sigstore.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if dir := filepath.Dir(file); !strings.HasSuffix(dir, "_fail") {
			good++
			request := suiteRequest(t, dir)
			if request.Path, err = filepath.Abs(request.Path); err != nil {
				t.Fatal(err)
			}
			prove(filepath.Base(dir), request)
		}
	}
	if good == 0 {
		t.Logf("the conformance suite is not at %s", corpus)
	} else if good < 15 {
		t.Errorf("only %d good bundles in the suite", good)
	}
	// What does need one says so, and is asked for again.
	l := newLocal(t)
	keyless := l.asks()
	if out := r.ask(verify.Request{Nonce: "keyless", Keyless: &keyless}); out.Error == nil || out.Error.Code != verify.CodeNetworkUnreachable || out.Signed != nil {
		t.Errorf("%+v", out)
	}
	prove("after it", signWith(t, pair(t, verify.ECDSA), "an archive").asks())
	if code, stderr := r.ends(); code != 0 {
		t.Errorf("it ended with %d: %s", code, stderr)
	}
	t.Logf("%d bundles, %d of the suite", n, good)
}
