package call_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/switchyard-plugins/switchyard/runtime/call"
	"github.com/switchyard-plugins/switchyard/runtime/process"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// benchPlugin is a minimal plugin in Go. It answers the first line with the
// identity of benchManifest and any other with its health.
const benchPlugin = `package main

import (
	"bufio"
	"fmt"
	"os"
)

func main() {
	in := bufio.NewReader(os.Stdin)
	for n := 1; ; n++ {
		if _, err := in.ReadSlice('\n'); err != nil {
			return
		}
		result := "{\"status\":\"healthy\",\"checkedAt\":\"2024-01-01T00:00:00Z\"}"
		if n == 1 {
			result = "{\"protocolVersion\":\"switchyard.plugin/v1\",\"plugin\":{\"schemaVersion\":\"switchyard.plugin-manifest/v1\"," +
				"\"id\":\"bench\",\"name\":\"Bench\",\"version\":\"1.0.0\",\"protocolVersion\":\"switchyard.plugin/v1\"," +
				"\"capabilities\":[\"project.inspect\"],\"requestedScopes\":[\"project.metadata.read\"]},\"grantedScopes\":[\"project.metadata.read\"]}"
		}
		fmt.Printf("{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":%s}\n", n, result)
	}
}
`

var benchManifest = manifest.Manifest{
	SchemaVersion: manifest.SchemaVersion, ID: "bench", Name: "Bench", Version: "1.0.0", ProtocolVersion: manifest.Protocol,
	Capabilities: []manifest.Capability{manifest.CapabilityInspect}, RequestedScopes: []manifest.Scope{manifest.ScopeMetadataRead},
}

const (
	benchRequest1 = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"switchyard.plugin/v1","hostVersion":"1.0.0","grantedScopes":["project.metadata.read"]}}` + "\n"
	benchRequest2 = `{"jsonrpc":"2.0","id":2,"method":"plugin.health","params":{}}` + "\n"
)

func buildBenchPlugin(b *testing.B) (program string) {
	b.Helper()
	dir := b.TempDir()
	source := filepath.Join(dir, "main.go")
	program = filepath.Join(dir, "plugin")
	if err := os.WriteFile(source, []byte(benchPlugin), 0o644); err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, source)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Skipf("go build: %v\n%s", err, out)
	}
	// 2 MiB exactly, whatever the compiler makes of it.
	if err := os.Truncate(program, 2<<20); err != nil {
		b.Fatal(err)
	}
	return program
}

// BenchmarkCall interleaves a bare exchange with a supervised one that hashes
// the executable, builds the environment and reads strictly, and reports medians and ratio.
func BenchmarkCall(b *testing.B) {
	program := buildBenchPlugin(b)
	var bare, supervised []time.Duration
	for b.Loop() {
		began := time.Now()
		bareCall(b, program)
		bare = append(bare, time.Since(began))
		began = time.Now()
		supervisedCall(b, program)
		supervised = append(supervised, time.Since(began))
	}
	median := func(d []time.Duration) float64 {
		slices.Sort(d)
		return float64(d[len(d)/2].Microseconds()) / 1000
	}
	b.ReportMetric(median(bare), "bare-ms")
	b.ReportMetric(median(supervised), "supervised-ms")
	b.ReportMetric(median(supervised)/median(bare), "ratio")
	b.ReportMetric(0, "ns/op")
}

func exchange(b *testing.B, w io.Writer, r *bufio.Reader) {
	for _, request := range []string{benchRequest1, benchRequest2} {
		if _, err := io.WriteString(w, request); err != nil {
			b.Fatal(err)
		}
		if _, err := r.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
	}
}

func bareCall(b *testing.B, program string) {
	inR, inW, _ := os.Pipe()
	outR, outW, _ := os.Pipe()
	pid, err := syscall.ForkExec(program, []string{program}, &syscall.ProcAttr{
		Dir: filepath.Dir(program), Env: []string{"LANG=C"}, Files: []uintptr{inR.Fd(), outW.Fd(), 2},
	})
	if err != nil {
		b.Fatal(err)
	}
	inR.Close()
	outW.Close()
	exchange(b, inW, bufio.NewReader(outR))
	inW.Close()
	syscall.Wait4(pid, nil, 0, nil)
	outR.Close()
}

func supervisedCall(b *testing.B, program string) {
	ctx, cancel := context.WithTimeout(context.Background(), call.DefaultTimeout)
	defer cancel()
	f, err := os.Open(program)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if _, err := io.CopyBuffer(struct{ io.Writer }{sha256.New()}, struct{ io.Reader }{f}, make([]byte, 64<<10)); err != nil {
		b.Fatal(err)
	}
	dir := filepath.Dir(program)
	child, err := process.Start(process.Spec{
		Executable: f, Path: program, Dir: dir, CallID: uuid.NewString(),
		Env: process.Environment(os.LookupEnv, manifest.Protocol, dir, "/home/somebody/project"),
	})
	if err != nil {
		b.Fatal(err)
	}
	defer child.Stdout.Close()
	client := call.New(child.Stdin, child.Stdout)
	if err := client.Initialize(ctx, call.Hello{HostVersion: "1.0.0", Identity: benchManifest.Identity(), Grants: benchManifest.RequestedScopes}); err != nil {
		b.Fatal(err)
	}
	if _, err := client.Health(ctx); err != nil {
		b.Fatal(err)
	}
	child.Stdin.Close()
	if err := client.End(ctx); err != nil {
		b.Fatal(err)
	}
	if exit := child.Finish(ctx, process.DefaultGrace); !exit.Clean() {
		b.Fatal(exit)
	}
}
