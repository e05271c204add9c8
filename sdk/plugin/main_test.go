package plugin

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// early keeps os.Stdout as it was before Main, as loggers do.
var early = log.New(os.Stdout, "early: ", 0)

const childEnv = "PLUGIN_TEST_CHILD"

// TestMain runs the test program as a plugin if it is asked to.
func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		os.Exit(m.Run())
	}
	Main(sample(), work{
		health: func(context.Context) (HealthResult, error) {
			fmt.Println("a stray line")
			if runtime.GOOS != "windows" {
				early.Print("another")
				c := exec.Command("/bin/sh", "-c", "echo from a child")
				c.Stdout = os.NewFile(1, "stdout")
				c.Run()
			}
			rest, err := io.ReadAll(os.Stdin)
			return HealthResult{Status: Healthy, Message: fmt.Sprintf("%d bytes of input", len(rest))}, err
		},
		operate: func(ctx context.Context, _ OperateRequest) (OperateResult, error) {
			fmt.Fprintln(os.Stderr, "waiting")
			<-ctx.Done()
			return OperateResult{Status: Failed, Summary: "stopped"}, nil
		},
	})
}

func child(t *testing.T) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Env = append(os.Environ(), childEnv+"=1")
	return c
}

func TestMainKeepsTheProtocolClean(t *testing.T) {
	c := child(t)
	c.Stdin = strings.NewReader(initializeLine + healthLine)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 2 || !strings.Contains(lines[1], `"message":"0 bytes of input"`) {
		t.Errorf("standard output:\n%s", out.String())
	}
	for _, stray := range []string{"a stray line", "early: another", "from a child"} {
		if runtime.GOOS != "windows" && !strings.Contains(errs.String(), stray) {
			t.Errorf("%q is not on standard error:\n%s", stray, errs.String())
		}
	}
}

func TestMainAnswersWhenTerminated(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("windows has no SIGTERM")
	}
	c := child(t)
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	c.Stdout = &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	io.WriteString(stdin, initializeLine+operateLine)
	log := bufio.NewReader(stderr)
	if text, err := log.ReadString('\n'); err != nil || text != "waiting\n" {
		t.Fatalf("%q, %v", text, err)
	}
	c.Process.Signal(syscall.SIGTERM)
	rest, _ := io.ReadAll(log)
	if err := c.Wait(); err == nil || c.ProcessState.ExitCode() != 1 {
		t.Errorf("exit: %v", err)
	}
	if !strings.Contains(out.String(), `"status":"failed","summary":"stopped"`) || !strings.HasPrefix(string(rest), "sample: ") {
		t.Errorf("standard output %s\nstandard error %s", out.String(), rest)
	}
}
