//go:build unix

package verify

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// TestMain runs the test program as a worker if it lies under a worker's name. How
// it behaves stands in the file beside it.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != WorkerName {
		os.Exit(m.Run())
	}
	self, _ := os.Executable()
	mode, _ := os.ReadFile(filepath.Join(filepath.Dir(self), "mode"))
	behave(string(mode))
}

func behave(mode string) {
	say := func(v any) {
		text, _ := json.Marshal(v)
		os.Stdout.Write(append(text, '\n'))
	}
	hello := Hello{Protocol: Protocol, Build: Build()}
	switch mode {
	case "other build":
		hello.Build = "another"
	case "other protocol":
		hello.Protocol = "switchyard.verify-worker/v0"
	case "silent":
		time.Sleep(time.Hour)
	case "dies":
		io.WriteString(os.Stderr, "out of luck\n")
		os.Exit(3)
	case "banner":
		io.WriteString(os.Stdout, "hello\n")
	case "endless hello":
		for {
			os.Stdout.Write(make([]byte, 1<<20))
		}
	}
	say(hello)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, MaxLine)
	for lines.Scan() {
		var r Request
		json.Unmarshal(lines.Bytes(), &r)
		if r.Keyless != nil {
			say(keylessAnswer(mode, r))
			continue
		}
		if r.Fetch != nil {
			for _, out := range fetchModes[mode](r) {
				out.Nonce = cmp.Or(out.Nonce, r.Nonce)
				say(out)
			}
			if mode == "endless" {
				for {
					say(Response{Nonce: r.Nonce, Chunk: make([]byte, MaxChunk)})
				}
			}
			continue
		}
		out := Response{Nonce: r.Nonce, Facts: &Facts{Kind: r.Bundle.Kind, Artifact: r.Bundle.Artifact,
			Bundle: digest.Of(r.Bundle.Document), Signer: Signer{Key: "sha256:" + strings.Repeat("a", 64)}}}
		switch mode {
		case "refuses":
			out = Response{Nonce: r.Nonce, Error: &Refusal{Code: CodeSignature, Message: "it is not"}}
		case "other nonce":
			out.Nonce = strings.Repeat("0", 32)
		case "other artifact":
			out.Facts.Artifact = digest.Of([]byte("other"))
		case "other bundle":
			out.Facts.Bundle = digest.Of([]byte("other"))
		case "other kind":
			out.Facts.Kind = Provenance
		case "nothing":
			out.Facts = nil
		case "unknown member":
			io.WriteString(os.Stdout, `{"nonce":"`+r.Nonce+`","verdict":"fine"}`+"\n")
			continue
		case "slow":
			time.Sleep(time.Hour)
		case "dies late":
			os.Exit(1)
		case "grandchild":
			c := exec.Command("/bin/sh", "-c", "sleep 600")
			c.Stdout, c.Stderr = os.Stdout, os.Stderr
			c.Start()
			os.WriteFile(filepath.Join(filepath.Dir(os.Args[0]), "pid"), []byte(strconv.Itoa(c.Process.Pid)), 0o600)
		}
		say(out)
	}
}

// keylessAnswer is a signature under a certificate, made as the mode says.
func keylessAnswer(mode string, r Request) Response {
	who := Signer{Identity: "release@example.com", Issuer: "https://accounts.example.com"}
	out := Signed{Bundle: []byte("bundle"), Signer: who, Facts: &Facts{Kind: Signature, Artifact: r.Keyless.Artifact, Bundle: digest.Of([]byte("bundle")), Signer: who}}
	switch mode {
	case "other artifact":
		out.Facts.Artifact = digest.Of([]byte("other"))
	case "other bundle":
		out.Bundle = []byte("other")
	case "other kind":
		out.Facts.Kind = Provenance
	case "other signer":
		out.Signer.Identity = "somebody@example.com"
	case "unproved":
		out.Facts = nil
	case "nothing":
		return Response{Nonce: r.Nonce}
	}
	return Response{Nonce: r.Nonce, Signed: &out}
}

// beside makes a directory with a program and a worker of that behaviour.
func beside(t *testing.T, mode string) (executable string) {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"switchyard": []byte("#!/bin/sh\n"), WorkerName: program} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "mode"), []byte(mode), 0o644); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "switchyard")
}

func request() BundleRequest {
	return BundleRequest{Kind: Signature, Artifact: digest.Of([]byte("archive")), Document: []byte("bundle")}
}

func startWorker(t *testing.T, ctx context.Context, mode string) (*Session, error) {
	t.Helper()
	w, err := Find(beside(t, mode))
	if err != nil {
		t.Fatal(err)
	}
	return w.Start(ctx)
}

func TestSession(t *testing.T) {
	s, err := startWorker(t, t.Context(), "good")
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		facts, err := s.Bundle(t.Context(), request())
		if err != nil || facts.Signer.Key == "" {
			t.Fatalf("%+v, %v", facts, err)
		}
	}
	s.Close()
	if code := s.command.ProcessState.ExitCode(); code > 0 {
		t.Errorf("it ended with %d", code)
	}
}

func TestRefusalKeepsTheSession(t *testing.T) {
	s, err := startWorker(t, t.Context(), "refuses")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 2 {
		var refusal *Refusal
		if _, err := s.Bundle(t.Context(), request()); !errors.As(err, &refusal) || refusal.Code != CodeSignature {
			t.Fatalf("got %v", err)
		}
	}
}

// TestWorkersThatAreNotStarted holds that a worker of another build, or one that
// does not begin as it should, is asked nothing.
func TestWorkersThatAreNotStarted(t *testing.T) {
	for mode, want := range map[string]string{
		"other build": "is another build (another)", "other protocol": "is another build", "dies": "does not begin", "banner": "does not begin",
		"endless hello": "does not begin",
	} {
		t.Run(mode, func(t *testing.T) {
			_, err := startWorker(t, t.Context(), mode)
			var broken *Broken
			if !errors.As(err, &broken) || !strings.Contains(err.Error(), want) {
				t.Fatalf("got %v", err)
			}
			if mode == "dies" && broken.Stderr != "out of luck\n" {
				t.Errorf("its last words: %q", broken.Stderr)
			}
		})
	}
}

// TestFactsThatDoNotCount holds that an answer counts only for what was asked.
func TestFactsThatDoNotCount(t *testing.T) {
	for _, mode := range []string{"other nonce", "other artifact", "other bundle", "other kind", "nothing", "unknown member", "dies late"} {
		t.Run(mode, func(t *testing.T) {
			s, err := startWorker(t, t.Context(), mode)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for range 2 { // nothing more is asked afterwards
				var broken *Broken
				if facts, err := s.Bundle(t.Context(), request()); !errors.As(err, &broken) || facts != nil {
					t.Fatalf("%+v, %v", facts, err)
				}
			}
		})
	}
}

// TestSlowWorkerIsEnded holds that the end of the context ends the wait and the
// worker, at the start and at an answer.
func TestSlowWorkerIsEnded(t *testing.T) {
	for _, mode := range []string{"silent", "slow"} {
		t.Run(mode, func(t *testing.T) {
			cause := errors.New("enough")
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			time.AfterFunc(100*time.Millisecond, func() { cancel(cause) })
			s, err := startWorker(t, ctx, mode)
			if err == nil {
				_, err = s.Bundle(ctx, request())
				s.Close()
			}
			var broken *Broken
			if !errors.As(err, &broken) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

// TestGrandchildIsEnded holds that a process which a worker left behind keeps
// nobody waiting and is ended with it.
func TestGrandchildIsEnded(t *testing.T) {
	w, err := Find(beside(t, "grandchild"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Bundle(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(w.Path()), "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	for range 200 {
		state, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil || strings.Contains(string(state), ") Z") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %d is still there", pid)
}

// TestFind holds where a worker is looked for, and which ones are not started.
func TestFind(t *testing.T) {
	unusable := func(t *testing.T, executable, want string) {
		t.Helper()
		_, err := Find(executable)
		var u *Unusable
		if !errors.As(err, &u) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	t.Run("missing, with others in PATH and here", func(t *testing.T) {
		other := filepath.Dir(beside(t, "good"))
		t.Setenv("PATH", other)
		t.Chdir(other)
		executable := beside(t, "good")
		if err := os.Remove(filepath.Join(filepath.Dir(executable), WorkerName)); err != nil {
			t.Fatal(err)
		}
		unusable(t, executable, "is missing")
	})
	t.Run("a link to the program is followed", func(t *testing.T) {
		executable := beside(t, "good")
		link := filepath.Join(t.TempDir(), "switchyard")
		if err := os.Symlink(executable, link); err != nil {
			t.Fatal(err)
		}
		w, err := Find(link)
		if err != nil || filepath.Dir(w.Path()) != filepath.Dir(executable) {
			t.Errorf("%+v, %v", w, err)
		}
	})
	t.Run("a link in the worker's place", func(t *testing.T) {
		executable := beside(t, "good")
		place := filepath.Join(filepath.Dir(executable), WorkerName)
		other := beside(t, "good")
		if err := errors.Join(os.Remove(place), os.Symlink(filepath.Join(filepath.Dir(other), WorkerName), place)); err != nil {
			t.Fatal(err)
		}
		unusable(t, executable, "is no regular file")
	})
	t.Run("writable by others", func(t *testing.T) {
		executable := beside(t, "good")
		if err := os.Chmod(filepath.Join(filepath.Dir(executable), WorkerName), 0o775); err != nil {
			t.Fatal(err)
		}
		unusable(t, executable, "can be written by others")
	})
	t.Run("in a directory that others can write", func(t *testing.T) {
		executable := beside(t, "good")
		if err := os.Chmod(filepath.Dir(executable), 0o777); err != nil {
			t.Fatal(err)
		}
		unusable(t, executable, "lies in a directory that can be written by others")
	})
	t.Run("of another user", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("only root can give files away")
		}
		executable := beside(t, "good")
		if err := os.Chown(filepath.Join(filepath.Dir(executable), WorkerName), 65534, 65534); err != nil {
			t.Fatal(err)
		}
		unusable(t, executable, "belongs to another user (uid 65534)")
	})
}

// TestKeylessAnswers holds that a signature under a certificate counts only with facts
// about it, about the file that was to be signed.
func TestKeylessAnswers(t *testing.T) {
	for mode, good := range map[string]bool{"": true, "other artifact": false, "other bundle": false, "other kind": false, "other signer": false,
		"unproved": false, "nothing": false} {
		t.Run(mode, func(t *testing.T) {
			w, err := Find(beside(t, mode))
			if err != nil {
				t.Fatal(err)
			}
			s, err := w.Start(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			out, err := s.Keyless(t.Context(), KeylessRequest{Artifact: digest.Of([]byte("archive"))})
			var broken *Broken
			switch {
			case good && (err != nil || string(out.Bundle) != "bundle"):
				t.Errorf("%+v, %v", out, err)
			case !good && (!errors.As(err, &broken) || out != nil):
				t.Errorf("%+v, %v", out, err)
			}
		})
	}
}
