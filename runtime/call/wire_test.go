package call

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

func TestSizes(t *testing.T) {
	t.Parallel()
	for _, more := range []int{-1, 0, 1} {
		text := strings.Replace(goodHealth, "slow", strings.Repeat("s", MaxMessage+more-len(goodHealth)+len("slow")), 1)
		if len(text) != MaxMessage+more {
			t.Fatal("wrong test")
		}
		for _, ending := range []string{"\n", ""} {
			client, _ := open(t, text+ending)
			_, err := client.Health(context.Background())
			var f *Fault
			if more <= 0 && err != nil || more > 0 && (!errors.As(err, &f) || f.Code != CodeOversized) {
				t.Errorf("answer of limit%+d, ending %q: %.200v", more, ending, err)
			}
		}
		// Requests: the input is what fills them.
		client, requests := open(t, goodOperate+"\n")
		request := plugin.OperateRequest{Project: plugin.Project{ID: "p"}, Action: "a"}
		const frame = `{"jsonrpc":"2.0","id":2,"method":"project.operate","params":{"project":{"id":"p","displayName":""},"action":"a","input":""}}`
		request.Input = json.RawMessage(`"` + strings.Repeat("i", MaxMessage+more-len(frame)) + `"`)
		_, err := client.Operate(context.Background(), request)
		if more > 0 {
			if !errors.Is(err, ErrTooLarge) {
				t.Errorf("request of limit%+d: %.200v", more, err)
			}
			// Nothing was sent, and the connection is good.
			request.Input = json.RawMessage("{}")
			if _, err = client.Operate(context.Background(), request); err != nil {
				t.Errorf("after a request that was too large: %v", err)
			}
			continue
		}
		if err != nil {
			t.Errorf("request of limit%+d: %v", more, err)
		} else if got := requests(); len(got[1]) != MaxMessage+more+1 {
			t.Errorf("request of limit%+d has %d bytes on the wire", more, len(got[1]))
		}
	}
}

// TestEndless reads a message that never ends, in bounded memory.
func TestEndless(t *testing.T) {
	t.Parallel()
	c, p, _ := connect(t)
	go func() {
		p.requests.ReadString('\n')
		chunk := `{"jsonrpc":"` + strings.Repeat("x", 64<<10)
		for {
			if _, err := io.WriteString(p.stdout, chunk); err != nil {
				return
			}
		}
	}()
	var f *Fault
	if err := c.Initialize(context.Background(), hello); !errors.As(err, &f) || f.Code != CodeOversized {
		t.Errorf("%v", err)
	}
	if len(c.in.buf) > MaxMessage+64<<10 {
		t.Errorf("%d bytes of buffer", len(c.in.buf))
	}
}

func TestArrivesInPieces(t *testing.T) {
	t.Parallel()
	c, p, _ := connect(t)
	go func() {
		for _, text := range []string{goodHello, goodHealth} {
			p.requests.ReadString('\n')
			for i := range len(text) {
				p.stdout.WriteString(text[i : i+1])
			}
			p.stdout.WriteString("\r")
			p.stdout.WriteString("\n")
		}
		p.stdout.Close()
	}()
	if err := c.Initialize(context.Background(), hello); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Health(context.Background()); err != nil {
		t.Error(err)
	}
	if err := c.End(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestExtraOutput(t *testing.T) {
	t.Parallel()
	var f *Fault
	// In the same write as the answer to initialize.
	c, p, _ := connect(t)
	p.answers(goodHello+"\n"+goodHealth+"\n", "")
	if err := c.Initialize(context.Background(), hello); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Health(context.Background()); !errors.As(err, &f) || f.Code != CodeExtraOutput || f.Method != plugin.MethodHealth {
		t.Errorf("early answer: %v", err)
	}
	for _, extra := range []string{goodHealth + "\n", "bye", "\n", "\x00"} {
		c, _ := open(t, goodHealth+"\n"+extra)
		if _, err := c.Health(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := c.End(context.Background()); !errors.As(err, &f) || f.Code != CodeExtraOutput || f.Method != StepEnd {
			t.Errorf("extra %q: %v", extra, err)
		}
	}
}

func TestBanner(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Code{
		"Welcome!\n" + goodHello + "\n":        CodeBanner,
		"Usage: sample [flags]":                CodeBanner,
		"[INFO] starting\n":                    CodeBanner,
		"\n" + goodHello + "\n":                CodeMalformed,
		`{"level":"info","msg":"up"}` + "\n":   CodeUnknownField,
		strings.Repeat("=", MaxMessage) + "==": CodeOversized,
	} {
		c, p, _ := connect(t)
		p.answers(text)
		var f *Fault
		if err := c.Initialize(context.Background(), hello); !errors.As(err, &f) || f.Code != want || f.Excerpt == "" && want == CodeBanner {
			t.Errorf("%.40q: %.200v, want %s", text, err, want)
		}
	}
}

func TestContextInterrupts(t *testing.T) {
	t.Parallel()
	var f *Fault
	cause := errors.New("enough")

	// A read.
	c, p, _ := connect(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		p.requests.ReadString('\n')
		p.stdout.WriteString(goodHello[:40])
		cancel(cause)
	}()
	err := c.Initialize(ctx, hello)
	if !errors.As(err, &f) || f.Code != CodeCancelled || !errors.Is(err, cause) {
		t.Errorf("read: %v", err)
	}

	// A write that the other end does not read.
	c, _ = open(t)
	ctx, stop := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer stop()
	_, err = c.Operate(ctx, plugin.OperateRequest{Action: "a", Input: json.RawMessage(`"` + strings.Repeat("x", 512<<10) + `"`)})
	if !errors.As(err, &f) || f.Code != CodeTimeout || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("write: %v", err)
	}

	// The end.
	c, p, _ = connect(t)
	ctx, stop = context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer stop()
	if err := c.End(ctx); !errors.As(err, &f) || f.Code != CodeTimeout {
		t.Errorf("end: %v", err)
	}
	p.stdout.Close()

	// A context that has ended before.
	c, p, _ = connect(t)
	p.answers(goodHello + "\n")
	ctx, cancel = context.WithCancelCause(context.Background())
	cancel(cause)
	if err := c.Initialize(ctx, hello); err != nil && (!errors.As(err, &f) || f.Code != CodeCancelled) {
		t.Errorf("ended before: %v", err)
	}

	// One that ends after an answer does not disturb the next call.
	c, p, _ = connect(t)
	p.answers(goodHello+"\n", goodHealth+"\n")
	ctx, cancel = context.WithCancelCause(context.Background())
	if err := c.Initialize(ctx, hello); err != nil {
		t.Fatal(err)
	}
	cancel(cause)
	if _, err := c.Health(context.Background()); err != nil {
		t.Errorf("next call: %v", err)
	}
}

// TestGoneReader holds that an answer counts although the request could not be
// written any more.
func TestGoneReader(t *testing.T) {
	t.Parallel()
	c, p, _ := connect(t)
	p.stdin.Close()
	p.stdout.WriteString("fatal: no license\n")
	p.stdout.Close()
	var f *Fault
	// What was there before the request is not an answer to it.
	if err := c.Initialize(context.Background(), hello); !errors.As(err, &f) || f.Code != CodeBanner {
		t.Errorf("%v", err)
	}
	c, p, _ = connect(t)
	p.stdin.Close()
	p.stdout.Close()
	if err := c.Initialize(context.Background(), hello); !errors.As(err, &f) || f.Code != CodeExited {
		t.Errorf("%v", err)
	}
	if g := f.AfterCrash("exit status 3"); g.Code != CodeCrashed || f.Code != CodeExited {
		t.Errorf("%v", g)
	}
	malformed := &Fault{Code: CodeMalformed}
	if g := malformed.AfterCrash("exit status 3"); g.Code != CodeMalformed {
		t.Errorf("%v", g)
	}
}
