//go:build unix

package main

import (
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// TestMain is the plugin where a host starts the test binary as one.
func TestMain(m *testing.M) {
	if os.Getenv(plugin.EnvProtocol) == plugin.SessionProtocol {
		main()
		return
	}
	os.Exit(m.Run())
}

// start starts the plugin in its package directory, as a host does.
func start(t *testing.T, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Dir = "package"
	cmd.Env = append([]string{plugin.EnvProtocol + "=" + plugin.SessionProtocol, plugin.EnvState + "=" + t.TempDir()}, env...)
	cmd.Stderr = os.Stderr
	return cmd
}

// exchange opens a session over two streams.
func exchange(t *testing.T, in io.Writer, out io.Reader) *wire.FrameReader {
	t.Helper()
	digest, err := wire.Digest([]byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	frames := wire.NewFrameReader(out)
	for i, body := range []wire.Body{
		&wire.Hello{HostVersion: "1", Protocol: wire.VersionRange{Min: wire.MinVersion, Max: wire.MaxVersion}, Requires: []wire.Feature{},
			Supports: []wire.Feature{wire.FlowCredit}, Codecs: []string{wire.CodecJSON}, MaxFrameBytes: 1 << 20},
		&wire.Init{InstanceID: "i", Grants: []wire.Grant{}, Settings: []byte("{}"), SettingsDigest: digest,
			Limits: wire.Limits{RequestTimeoutMs: 1000, HeartbeatIntervalMs: 1000, MaxInFlight: 1}, AcceptedClasses: wire.PayloadClasses},
	} {
		e := wire.Envelope{Version: wire.MaxVersion, MessageID: wire.NewUUID(), Sequence: uint64(i + 1), Timestamp: time.Now()}
		if err := wire.WriteFrame(in, wire.AppendMessage(nil, &e, body), wire.DefaultMaxFrame); err != nil {
			t.Fatal(err)
		}
		frame, err := frames.Next(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := wire.Scan(frame, &e); err != nil || e.Type != []wire.MessageType{wire.TypeHelloAck, wire.TypeInitAck}[i] {
			t.Fatalf("%s %v", frame, err)
		}
	}
	return frames
}

func TestOverStandardStreams(t *testing.T) {
	cmd := start(t)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	frames := exchange(t, in, out)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var e wire.Envelope
	if frame, err := frames.Next(nil); err != nil || wire.Scan(frame, &e) != nil || e.Type != wire.TypeGoAway {
		t.Errorf("%s %v", frame, err)
	}
	if rest, err := io.ReadAll(out); err != nil || len(rest) > 0 {
		t.Errorf("%q %v", rest, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestOverASocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	cmd := start(t, plugin.EnvSocket+"="+path)
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	exchange(t, conn, conn)
	if err := conn.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || stdout.Len() > 0 {
		t.Errorf("%v %q", err, stdout.String())
	}
}

// TestRefusesToStart holds that a package that is not in order starts nothing.
func TestRefusesToStart(t *testing.T) {
	cmd := start(t)
	cmd.Dir = t.TempDir()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err == nil || stdout.Len() > 0 || stderr.Len() == 0 {
		t.Errorf("%v %q %q", err, stdout.String(), stderr.String())
	}
}
