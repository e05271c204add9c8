package commands

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// besideWorker puts the verify worker, built from this checkout, beside the program
// that scripts run.
func besideWorker(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: worker")
	}
	program := ""
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if p := filepath.Join(dir, "switchyard"); program == "" {
			if _, err := os.Stat(p); err == nil {
				program = p
			}
		}
	}
	if program == "" {
		ts.Fatalf("switchyard is not in PATH")
	}
	ts.Check(workerBeside(program))
}

var workers sync.Map // by directory: func() error

func workerBeside(program string) error {
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return err
	}
	dir := filepath.Dir(real)
	build, _ := workers.LoadOrStore(dir, sync.OnceValue(func() error {
		// Without the version control's state, as test programs are built.
		c := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(dir, "switchyard-verify"), "../verify/worker/switchyard-verify")
		c.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("build the verify worker: %w\n%s", err, out)
		}
		return nil
	}))
	return build.(func() error)()
}
