package runtime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
)

// An entry is what is started for an approved package.
type entry struct {
	executable *os.File // of the package, held by its Approval, or an interpreter
	path       string
	args       []string
	close      func()
}

// NoInterpreter says that what starts a package's entry file is not on this machine.
type NoInterpreter struct {
	ID      string
	Program string // python3 or dotnet
	Wants   string // the version that the manifest asks for
}

func (e *NoInterpreter) Error() string {
	return fmt.Sprintf("%s is started by %s, %s or newer, and no directory of the PATH that plugins get has it", e.ID, e.Program, e.Wants)
}

// The exit statuses of pythonLauncher, which say why nothing of the package ran.
const (
	exitPythonTooOld = 78
	exitNoPythonSDK  = 79
)

// pythonLauncher starts MODULE CALLABLE of the package that the working directory is. The
// package's own modules come first, its SDK too, if it has one. Isolated (-I) and without
// byte code (-B): nothing of the user's environment reaches it and nothing is written.
const pythonLauncher = `import sys, os
need = tuple(int(n) for n in sys.argv[3].split("."))
if sys.version_info[:2] < need:
    sys.stderr.write("the plugin needs Python %s, this is %d.%d\n" % (sys.argv[3], *sys.version_info[:2]))
    sys.exit(78)
sys.path.insert(0, os.getcwd())
try:
    from switchyard_plugin.launch import main
except ImportError as fault:
    if (fault.name or "").partition(".")[0] != "switchyard_plugin":
        raise
    sys.stderr.write("the SDK switchyard_plugin is neither in the package nor installed for %s\n" % sys.executable)
    sys.exit(79)
main()
`

// entryOf says what starts the approved package under an environment.
func entryOf(a *pkgmgr.Approval, environment []string) (*entry, error) {
	m := &a.Manifest
	switch m.EntryKind() {
	case pkgmgr.EntryPython:
		p := m.Session.EntryPoints.Python
		return interpreted(a, environment, "python3", p.Version, "-I", "-B", "-c", pythonLauncher, p.Module, p.Callable, p.Version)
	case pkgmgr.EntryDotNet:
		d := m.Session.EntryPoints.DotNet
		return interpreted(a, environment, "dotnet", strings.TrimPrefix(d.TargetFramework, "net"), "exec", a.Path, "--switchyard-type", d.Type)
	}
	return &entry{executable: a.Executable, path: a.Path, args: m.Arguments, close: func() {}}, nil
}

// interpreted finds the interpreter on the PATH that the plugin gets, and nowhere else.
func interpreted(a *pkgmgr.Approval, environment []string, program, wants string, args ...string) (*entry, error) {
	for _, dir := range filepath.SplitList(variable(environment, "PATH")) {
		path := filepath.Join(dir, program)
		if goruntime.GOOS == "windows" {
			path += ".exe"
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			continue
		}
		info, err := os.Stat(real)
		if err != nil || !info.Mode().IsRegular() || goruntime.GOOS != "windows" && info.Mode()&0o111 == 0 {
			continue
		}
		f, err := os.Open(real)
		if err != nil {
			if errors.Is(err, os.ErrPermission) {
				continue
			}
			return nil, err
		}
		return &entry{executable: f, path: real, args: args, close: func() { f.Close() }}, nil
	}
	return nil, &NoInterpreter{ID: a.Manifest.ID, Program: program, Wants: wants}
}

func variable(environment []string, name string) string {
	for _, kv := range environment {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}
