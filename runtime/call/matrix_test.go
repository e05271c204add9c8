package call_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/switchyard-plugins/switchyard/runtime/call"
	"github.com/switchyard-plugins/switchyard/runtime/process"
	"github.com/switchyard-plugins/switchyard/runtime/process/misbehave"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

func TestMain(m *testing.M) {
	misbehave.Main()
	os.Exit(m.Run())
}

// ok marks a behaviour that is unusual but correct.
const ok call.Code = "ok"

// matrix says for each behaviour what the call comes to. What comes to a timeout
// is given little time.
var matrix = map[string]call.Code{
	"good": ok, "split": ok, "crlf": ok, "no-newline": ok, "spaces": ok, "reordered-identity": ok,
	"size-below-limit": ok, "size-at-limit": ok, "size-above-limit": call.CodeOversized, "endless": call.CodeOversized,

	"exit-before-initialize": call.CodeExited, "crash-before-initialize": call.CodeCrashed, "crash-at-initialize": call.CodeCrashed,
	"crash-at-method": call.CodeCrashed, "signal-at-method": call.CodeCrashed, "truncated-at-method": call.CodeExited,
	"stderr-and-crash": call.CodeCrashed, "crash-after-answer": ok,
	"hang-before-initialize": call.CodeTimeout, "hang-at-initialize": call.CodeTimeout, "hang-at-method": call.CodeTimeout,
	"hang-in-message": call.CodeTimeout, "stop-at-method": call.CodeTimeout, "ignore-signals": call.CodeTimeout,
	"daemon-of-hang": call.CodeTimeout,
	"close-stdout":   call.CodeExited, "ignore-stdin-close": ok,

	"banner": call.CodeBanner, "banner-at-method": call.CodeMalformed, "empty-line": call.CodeMalformed,
	"malformed": call.CodeMalformed, "malformed-init": call.CodeMalformed, "not-an-object": call.CodeMalformed,
	"two-values": call.CodeMalformed, "byte-order-mark": call.CodeMalformed, "invalid-utf8": call.CodeMalformed,
	"duplicate-member": call.CodeMalformed, "deep": call.CodeMalformed, "wrong-version": call.CodeMalformed,
	"both": call.CodeMalformed, "neither": call.CodeMalformed, "null-result": call.CodeMalformed, "empty-result": call.CodeMalformed,
	"bad-status": call.CodeMalformed, "bad-time": call.CodeMalformed, "no-id": call.CodeMalformed,
	"secret-in-output": call.CodeMalformed, "control-in-output": call.CodeMalformed,
	"unknown-member": call.CodeUnknownField, "unknown-in-result": call.CodeUnknownField, "wrong-case": call.CodeUnknownField,
	"wrong-id": call.CodeWrongID, "string-id": call.CodeWrongID, "null-id": call.CodeWrongID,
	"error-code": call.CodeMalformed, "error-long": call.CodeMalformed, "error-longest": call.CodeError,
	"error-result": call.CodeError, "error-method": call.CodeError, "error-state": call.CodeError, "error-scope": call.CodeError, "error-init": call.CodeError, "error-protocol": call.CodeProtocolMismatch,
	"extra-output": call.CodeExtraOutput, "extra-at-end": call.CodeExtraOutput, "early-answer": call.CodeExtraOutput,

	"mismatch-id": call.CodeIdentityMismatch, "mismatch-name": call.CodeIdentityMismatch, "mismatch-version": call.CodeIdentityMismatch,
	"mismatch-schema": call.CodeIdentityMismatch, "mismatch-protocol": call.CodeIdentityMismatch,
	"mismatch-capabilities": call.CodeIdentityMismatch, "mismatch-scopes": call.CodeIdentityMismatch,
	"mismatch-grants": call.CodeIdentityMismatch, "repeated-scope": call.CodeIdentityMismatch,
	"mismatch-negotiated": call.CodeProtocolMismatch,

	"stderr-flood": ok, "stderr-no-text": ok, "stderr-one-line": ok, "stderr-secrets": ok, "environment": ok,

	"child": ok, "child-in-own-group": ok, "child-in-own-session": ok, "daemon": ok, "daemon-holding-pipes": ok,
	"daemon-without-mark": ok, "daemon-ignoring-signals": ok, "daemon-stopped": ok, "daemon-of-crash": call.CodeCrashed,
	"daemon-without-any-mark":  ok,
	"daemon-before-initialize": ok, "daemon-and-broken-message": call.CodeMalformed, "fork-bomb": ok, "fork-chain": ok,
}

// TestMatrix runs every behaviour as a real process and holds that it comes to
// its own code, in bounded time, and leaves no process behind.
func TestMatrix(t *testing.T) {
	for _, name := range misbehave.Names() {
		if _, known := matrix[name]; !known {
			t.Errorf("no expectation for behaviour %q", name)
		}
	}
	if len(matrix) != len(misbehave.Names()) {
		t.Errorf("%d expectations for %d behaviours", len(matrix), len(misbehave.Names()))
	}
	for name, want := range matrix {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timeout := 30 * time.Second
			if want == call.CodeTimeout {
				timeout = time.Second
			}
			began := time.Now()
			child, id, err := run(t, name, timeout)
			exit := child.Finish(context.Background(), 0)
			if took := time.Since(began); took > 60*time.Second {
				t.Errorf("took %v", took)
			}
			if left := marked(t, id); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			if exit.Survivors != 0 {
				t.Errorf("exit: %+v", exit)
			}
			if want == ok {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var f *call.Fault
			if !errors.As(err, &f) {
				t.Fatalf("%v, want %s", err, want)
			}
			// A child that the machine was too busy to start in time is no other fault.
			if f.Code != want {
				t.Errorf("%s: %v\nwant %s", f.Code, f, want)
			}
			if strings.Contains(f.Error(), "canary") {
				t.Errorf("foreign text: %q", f.Error())
			}
		})
	}
}

// run makes one call as a host does: start, initialize, inspect or health, an
// orderly end, and the exit's status in the judgement.
func run(t *testing.T, name string, timeout time.Duration) (child *process.Child, callID string, err error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	executable, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer executable.Close()
	m := manifest.Manifest{
		SchemaVersion: manifest.SchemaVersion, ID: "sample", Name: "Sample", Version: "1.0.0", ProtocolVersion: manifest.Protocol,
		Executable: "sample", Arguments: []string{}, Capabilities: manifest.Capabilities, RequestedScopes: manifest.Scopes,
	}
	dir := t.TempDir()
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "plugin.json"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	callID = uuid.NewString()
	child, err = process.Start(process.Spec{
		Executable: executable, Path: self, Args: misbehave.Args(name), Dir: dir, CallID: callID,
		Env: process.Environment(os.LookupEnv, manifest.Protocol, dir),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer child.Stdout.Close()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	client := call.New(child.Stdin, child.Stdout)
	err = client.Initialize(ctx, call.Hello{HostVersion: "1.0.0", Identity: m.Identity(), Grants: []manifest.Scope{manifest.ScopeMetadataRead}})
	if err == nil {
		_, err = client.Health(ctx)
	}
	if err == nil {
		child.Stdin.Close()
		ended := make(chan error, 1)
		endCtx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		go func() { ended <- client.End(endCtx) }()
		child.Finish(ctx, time.Second)
		err = <-ended
		var f *call.Fault
		if errors.As(err, &f) && f.Code == call.CodeTimeout {
			err = nil // the process did not end by itself; that is what exit says
		}
		return child, callID, err
	}
	grace := time.Duration(0)
	var f *call.Fault
	if errors.As(err, &f) && f.Code == call.CodeExited {
		grace = 5 * time.Second // for its own exit status
		if name == "close-stdout" {
			grace = 100 * time.Millisecond
		}
	}
	exit := child.Finish(ctx, grace)
	if f != nil {
		err = f
		if !exit.Killed && !exit.Clean() {
			err = f.AfterCrash(exit.String())
		}
	}
	return child, callID, err
}

// TestCrashWhileInitialising holds what the user learns: at once, how the
// process ended and what it said last.
func TestCrashWhileInitialising(t *testing.T) {
	t.Parallel()
	began := time.Now()
	child, _, err := run(t, "stderr-and-crash", 10*time.Minute)
	if took := time.Since(began); took > time.Minute {
		t.Errorf("took %v", took)
	}
	if want := "initialize: the plugin crashed (exit status 3)"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if lines := child.Stderr.Lines(0); len(lines) != 1 || lines[0].Text != "cannot open the database" {
		t.Errorf("stderr: %+v", lines)
	}
}

// marked lists living processes of the call.
func marked(t *testing.T, callID string) (pids []string) {
	t.Helper()
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		environ, _ := os.ReadFile(path)
		if slices.Contains(strings.Split(string(environ), "\x00"), process.MarkVariable+"="+callID) {
			pids = append(pids, path)
		}
	}
	return pids
}
