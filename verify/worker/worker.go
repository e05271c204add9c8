// Package worker is the verify worker: it checks Sigstore bundles, makes them,
// reads keys, SBOMs and the metadata of TUF repositories, and fetches files over https, for the program switchyard,
// which starts it as switchyard-verify.
//
// It reads requests as lines of JSON and answers each with one line, a fetch with
// several, in order, until the input ends. It reports facts that are bound to the
// digest and the nonce that it was given and decides nothing: whether a signer is the
// right one is a policy's business. It opens no connection unless a request asks for
// one and says how (network.go). What it parses was written by strangers, so it bounds
// what it reads, limits itself before the first byte, and turns a panic of a library
// into an answer.
package worker

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/switchyard-plugins/switchyard/verify"
)

// Run answers requests until in ends. It limits the whole process.
func Run(in io.Reader, out io.Writer) error {
	if err := limitSelf(); err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	if err := write(out, verify.Hello{Protocol: verify.Protocol, Build: verify.Build()}); err != nil {
		return err
	}
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := readLine(lines)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := write(out, answer(line, out)); err != nil {
			return err
		}
	}
}

// readLine returns one line without its end. What has none is no request: the
// other side died while it wrote.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > verify.MaxLine:
			return nil, fmt.Errorf("a request of more than %d bytes", verify.MaxLine)
		case err == nil:
			return line[:len(line)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

func write(out io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = out.Write(append(text, '\n'))
	return err
}

// answer performs one request, and writes to chunks what comes before its answer. A panic
// is an answer, too.
func answer(line []byte, chunks io.Writer) (out verify.Response) {
	var r verify.Request
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(os.Stderr, "switchyard-verify: panic: %v\n%s", p, debug.Stack())
			out = verify.Response{Nonce: r.Nonce, Error: refuse(verify.CodeCrashed, "the worker crashed on this request: %v", p)}
		}
	}()
	if err := json.Unmarshal(line, &r, json.RejectUnknownMembers(true)); err != nil {
		return verify.Response{Error: refuse(verify.CodeRequestMalformed, "%v", err)}
	}
	out = perform(r, func(chunk []byte) error { return write(chunks, verify.Response{Nonce: r.Nonce, Chunk: chunk}) })
	out.Nonce = r.Nonce
	return out
}

func perform(r verify.Request, send func(chunk []byte) error) (out verify.Response) {
	jobs := 0
	for _, asked := range []bool{r.Bundle != nil, r.Sign != nil, r.NewKey != nil, r.Key != nil, r.SBOM != nil, r.Keyless != nil, r.Fetch != nil,
		r.TUF != nil, r.TrustedRoot != nil} {
		if asked {
			jobs++
		}
	}
	var err error
	switch {
	case jobs > 1:
		err = refuse(verify.CodeRequestMalformed, "the request asks for %d things at once", jobs)
	case r.Bundle != nil:
		out.Facts, err = checkBundle(*r.Bundle)
	case r.Sign != nil:
		out.Signed, err = sign(*r.Sign)
	case r.NewKey != nil:
		out.Key, err = newKey(*r.NewKey)
	case r.Key != nil:
		out.Key, err = readKey(*r.Key)
	case r.SBOM != nil:
		out.SBOM, err = readSBOM(r.SBOM.Document)
	case r.Keyless != nil:
		out.Signed, err = signKeyless(*r.Keyless, serviceTimes)
	case r.Fetch != nil:
		out.Fetched, err = fetch(*r.Fetch, send)
	case r.TUF != nil:
		out.TUF, err = checkTUF(*r.TUF)
	case r.TrustedRoot != nil:
		out.TrustedRoot, err = describeRoot(r.TrustedRoot.Document)
	default:
		err = refuse(verify.CodeRequestMalformed, "the request asks for nothing")
	}
	if err != nil {
		var refusal *verify.Refusal
		if !errors.As(err, &refusal) {
			refusal = refuse(verify.CodeRequestMalformed, "%v", err)
		}
		return verify.Response{Error: refusal}
	}
	return out
}

// maxMessage bounds the message of a refusal, in bytes: libraries quote what they
// cannot read.
const maxMessage = 1 << 10

func refuse(code verify.Code, format string, args ...any) *verify.Refusal {
	message := fmt.Sprintf(format, args...)
	if len(message) > maxMessage {
		message = message[:maxMessage] + "…"
	}
	return &verify.Refusal{Code: code, Message: strings.ToValidUTF8(message, "\uFFFD")}
}
