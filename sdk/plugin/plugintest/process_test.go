package plugintest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

// childArgument makes the test program behave as a plugin.
const childArgument = "plugintest-child"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == childArgument {
		runChild(os.Args[2])
	}
	os.Exit(m.Run())
}

// runChild is a plugin that does what behaviour says, and is otherwise correct.
func runChild(behaviour string) {
	m, err := plugin.PackageManifest()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	switch behaviour {
	case "exits early":
		fmt.Fprintln(os.Stderr, "no rules found")
		os.Exit(3)
	case "chatty":
		fmt.Println("plugin starting")
	case "needs HOME":
		if os.Getenv("HOME") == "" {
			fmt.Fprintln(os.Stderr, "HOME is not set")
			os.Exit(1)
		}
	case "loud":
		line := strings.Repeat("log ", 250) + "\n"
		for range 10 << 10 { // 10 MiB
			io.WriteString(os.Stderr, line)
		}
	case "status":
		if err := plugin.Serve(context.Background(), os.Stdin, os.Stdout, m, good{}); err != nil {
			os.Exit(1)
		}
		os.Exit(4)
	case "leaves a child":
		c := exec.Command("sleep", "600")
		c.Stdout = os.Stdout
		if err := c.Start(); err != nil {
			os.Exit(1)
		}
	case "stays":
		if err := plugin.Serve(context.Background(), os.Stdin, os.Stdout, m, good{}); err != nil {
			os.Exit(1)
		}
		r, w, err := os.Pipe()
		if err != nil {
			os.Exit(1)
		}
		io.Copy(io.Discard, r) // for ever: w stays open
		w.Close()
	}
	if err := plugin.Serve(context.Background(), os.Stdin, os.Stdout, m, good{}); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// childPackage makes a package whose executable is the test program.
func childPackage(t *testing.T, behaviour string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	m := goodManifest()
	m.Executable = "bin/good"
	if runtime.GOOS == "windows" {
		m.Executable += ".exe"
	}
	m.Arguments = []string{childArgument, behaviour}
	document, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	err = errors.Join(
		os.Mkdir(bin, 0o755), os.Chmod(dir, 0o755), os.Chmod(bin, 0o755),
		os.WriteFile(filepath.Join(dir, plugin.ManifestFile), document, 0o644),
		os.WriteFile(filepath.Join(dir, filepath.FromSlash(m.Executable)), program, 0o755),
		os.Chmod(filepath.Join(dir, filepath.FromSlash(m.Executable)), 0o755),
	)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestRunPackage(t *testing.T) {
	Run(t, Config{Package: childPackage(t, "good")})
}

func TestProcesses(t *testing.T) {
	for _, tc := range []struct{ behaviour, says string }{
		{"loud", ""},
		{"exits early", `no rules found`},
		{"chatty", `a line that is not a response: "plugin starting"`},
		{"needs HOME", "HOME is not set"},
		{"status", "exit status 4"},
		{"leaves a child", "still holds its standard output"},
		{"stays", "did not end within"},
	} {
		t.Run(tc.behaviour, func(t *testing.T) {
			if runtime.GOOS == "windows" && tc.behaviour == "leaves a child" {
				t.Skip("windows has no sleep command")
			}
			s, err := newSubject(Config{Package: childPackage(t, tc.behaviour)}, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range checks() {
				if k.name != "end/after-call" {
					continue
				}
				r := k.result(t.Context(), s)
				switch {
				case tc.says == "" && r.Err != nil:
					t.Error(r.Err)
				case tc.says != "" && (r.Err == nil || !strings.Contains(r.Err.Error(), tc.says)):
					t.Errorf("%v, want %q", r.Err, tc.says)
				}
			}
		})
	}
}

// TestEnvironment holds that a plugin sees nothing of the test's environment
// but what a host lets through.
func TestEnvironment(t *testing.T) {
	t.Setenv("PLUGINTEST_CANARY", "secret")
	t.Setenv("LANG", "C")
	env := strings.Join(environment(), "\n")
	if strings.Contains(env, "CANARY") || !strings.Contains(env, "LANG=C") || !strings.Contains(env, "SWITCHYARD_PLUGIN_PROTOCOL=switchyard.plugin/v1") {
		t.Errorf("environment:\n%s", env)
	}
}
