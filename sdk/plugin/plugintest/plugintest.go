// Package plugintest tests a plugin against the call protocol, from the
// author's own tests: the handler in the same process, any other implementation
// that speaks over two streams, or the finished package with its executable, in
// whatever language that was written.
//
//	func TestProtocol(t *testing.T) {
//		plugintest.Run(t, plugintest.Config{Manifest: manifest, Handler: handler{}})
//	}
//
// Run checks what every plugin owes the protocol (docs/protocol-call.md):
// identity, scopes, strict reading, errors, limits, an orderly end. Open gives
// a Client for assertions about one plugin's own work.
//
// The package is not a host. It asks nobody for trust and records nothing: it
// runs the plugin that it is given, as the user who runs the test.
package plugintest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

// A Config names the plugin under test: exactly one of Handler, Serve and
// Package. Handler and Serve need Manifest; Package brings its own.
type Config struct {
	Manifest plugin.Manifest
	Handler  plugin.Handler

	// Serve is an implementation of its own. It must answer what it reads from
	// in until in ends, and then return nil.
	Serve func(ctx context.Context, in io.Reader, out io.Writer) error

	// Package is a directory with plugin.json and the executable, as it would
	// be installed. Every connection starts a process with the environment that
	// a host gives.
	Package string

	// Project is what inspect is asked about. The zero value stands for a small
	// project made for the test. Actions are never run on it.
	Project plugin.Project

	// Timeout bounds one answer; 0 is the protocol's 15 seconds.
	Timeout time.Duration
}

// The bounds that a host sets.
const (
	callTimeout = 15 * time.Second // one answer
	endTimeout  = 3 * time.Second  // from closed input to the end
)

// A Result is the outcome of one check.
type Result struct {
	Name    string // as "initialize/once"
	Err     error  // nil: the plugin passed; wraps a *Violation: it did not
	Skipped string // why the check does not apply; "" if it ran
}

// A Violation is a rule of the protocol that the plugin broke.
type Violation struct{ Message string }

func (v *Violation) Error() string { return v.Message }

func violated(format string, args ...any) error {
	return &Violation{Message: fmt.Sprintf(format, args...)}
}

// Run runs every check as a subtest of t.
func Run(t *testing.T, c Config) {
	t.Helper()
	s, err := newSubject(c, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range checks() {
		t.Run(k.name, func(t *testing.T) {
			r := k.result(t.Context(), s)
			switch {
			case r.Err != nil:
				t.Error(r.Err)
			case r.Skipped != "":
				t.Skip(r.Skipped)
			}
		})
	}
}

// Check runs every check and returns one Result for each, in a fixed order. The
// error is about c itself.
func Check(ctx context.Context, c Config) ([]Result, error) {
	dir, err := os.MkdirTemp("", "plugintest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s, err := newSubject(c, dir)
	if err != nil {
		return nil, err
	}
	var results []Result
	for _, k := range checks() {
		results = append(results, k.result(ctx, s))
	}
	return results, nil
}

// Open connects to the plugin, initializes it with the grants and returns the
// connection. It ends with the test, and the test fails if it does not end
// well. Each connection to a package is a process of its own.
func Open(t testing.TB, c Config, grants ...plugin.Scope) *Client {
	t.Helper()
	s, err := newSubject(c, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	client, err := s.dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() && client.Stderr() != "" {
			t.Logf("the plugin's standard error:\n%s", client.Stderr())
		}
	})
	if _, err := client.Initialize(t.Context(), grants...); err != nil {
		t.Fatal(err)
	}
	return client
}

// A subject is a plugin that can be connected to.
type subject struct {
	Config
	dir string // scratch
}

func newSubject(c Config, dir string) (*subject, error) {
	n := 0
	for _, given := range []bool{c.Handler != nil, c.Serve != nil, c.Package != ""} {
		if given {
			n++
		}
	}
	if n != 1 {
		return nil, errors.New("plugintest: exactly one of Handler, Serve and Package must be given")
	}
	if c.Timeout == 0 {
		c.Timeout = callTimeout
	}
	var err error
	if c.Package != "" {
		if c.Package, err = filepath.Abs(c.Package); err != nil {
			return nil, err
		}
		if c.Manifest, err = readManifest(c.Package); err != nil {
			return nil, fmt.Errorf("plugintest: %w", err)
		}
	} else if err := c.Manifest.Validate(); err != nil {
		return nil, fmt.Errorf("plugintest: %w", err)
	}
	if h := c.Handler; h != nil {
		c.Serve = func(ctx context.Context, in io.Reader, out io.Writer) error {
			return plugin.Serve(ctx, in, out, c.Manifest, h)
		}
	}
	if c.Project == (plugin.Project{}) {
		if c.Project, err = sampleProject(dir); err != nil {
			return nil, err
		}
	}
	return &subject{Config: c, dir: dir}, nil
}

// sampleProject makes a small project below dir.
func sampleProject(dir string) (plugin.Project, error) {
	root := filepath.Join(dir, "project")
	files := map[string]string{
		"README.md":   "# Sample\n\nA project to look at.\n",
		"src/main.go": "package main\n\nfunc main() {}\n",
		"go.mod":      "module example.com/sample\n",
		"empty":       "",
	}
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return plugin.Project{}, err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return plugin.Project{}, err
		}
	}
	return plugin.Project{ID: "plugintest", DisplayName: "Sample project", Root: root}, nil
}
