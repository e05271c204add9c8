package commands

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// Programs for scripts that need what switchyard does not link. Each is built once.
var (
	localSigstore = sync.OnceValues(func() (string, error) { return buildForScripts("sigstore-local") })
	localTUF      = sync.OnceValues(func() (string, error) { return buildForScripts("tuf-local") })
)

func buildForScripts(name string) (string, error) {
	dir, err := os.MkdirTemp("", name+"-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	c := exec.Command("go", "build", "-buildvcs=false", "-o", path, "../verify/worker/sigstoretest/"+name)
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return path, nil
}

// writeTUF writes a TUF repository; tuf-local says how.
func writeTUF(ts *testscript.TestScript, neg bool, args []string) {
	program, err := localTUF()
	ts.Check(err)
	if neg || len(args) < 2 {
		ts.Fatalf("usage: tuf DIR TRUSTED_ROOT [NAME=VALUE…]")
	}
	ts.Check(ts.Exec(program, args...))
}

// serveSigstore starts an instance of Sigstore that writes its files into a directory,
// and sets URL and PLAIN to where it listens. It ends with the script.
func serveSigstore(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: sigstore DIR")
	}
	program, err := localSigstore()
	ts.Check(err)
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o700))
	c := exec.Command(program, dir)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	ts.Check(err)
	out, err := c.StdoutPipe()
	ts.Check(err)
	ts.Check(c.Start())
	ts.Defer(func() {
		in.Close()
		ts.Check(c.Wait())
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || strings.TrimSpace(line) != "ready" {
		ts.Fatalf("the local instance of Sigstore says %q: %v", line, err)
	}
	for name, file := range map[string]string{"URL": "url", "PLAIN": "plain"} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		ts.Check(err)
		ts.Setenv(name, string(text))
	}
}
