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

// localSigstore builds the instance of Sigstore for tests, once.
var localSigstore = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "sigstore-local-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "sigstore-local")
	c := exec.Command("go", "build", "-buildvcs=false", "-o", path, "../verify/worker/sigstoretest/sigstore-local")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the local instance of Sigstore: %w\n%s", err, out)
	}
	return path, nil
})

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
