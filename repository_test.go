package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/switchyard-plugins/switchyard"

// layers lists, for each place, the places that it may import beside itself. What
// lies below a place follows its rule unless it has one of its own.
var layers = map[string][]string{
	"":                {"commands"},
	"commands":        {"runtime", "pkgmgr", "lockfile", "verify", "schemas", "sdk"},
	"runtime":         {"pkgmgr", "lockfile", "schemas", "sdk/plugin"},
	"runtime/process": {"schemas"},
	"runtime/call":    {"schemas", "sdk/plugin", "runtime/process/redact"},
	"runtime/session": {"schemas", "sdk/plugin/wire", "runtime/process/redact"},
	"runtime/receipt": {"schemas", "sdk/plugin/wire"},
	"runtime/secret":  {"schemas", "lockfile/textfile"},
	"pkgmgr":          {"lockfile", "verify", "schemas"},
	"pkgmgr/archive":  {"schemas"},
	"pkgmgr/state":    {"schemas"},
	"pkgmgr/project":  {"lockfile", "verify/policy", "schemas"},
	"lockfile":        {"schemas"},
	"verify":          {"schemas"},
	"verify/policy":   {"verify", "lockfile/tomlstrict", "schemas"},
	"schemas":         {},
	"sdk/plugin":      {"schemas/manifest", "schemas/sessionmanifest", "schemas/subset"},
	"sdk/plugin/wire": {"sdk/plugin/internal/strict"},
	"sdk/conformance": {"schemas"},
	"sdk/examples":    {"sdk/plugin"},
	"sdk/python":      {"schemas/subset", "sdk/plugin/wire", "sdk/conformance"},
	"sdk/scaffold":    {"schemas", "sdk/plugin", "sdk/python", "sdk/conformance"},
}

type listed struct {
	ImportPath, Dir                    string
	Imports, TestImports, XTestImports []string
	Standard                           bool
}

func goList(t *testing.T, args ...string) []listed {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list", "-json=ImportPath,Dir,Imports,Standard"}, args...)...).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var list []listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p listed
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	return list
}

func place(importPath string) string {
	return strings.TrimPrefix(strings.TrimPrefix(importPath, module), "/")
}

// rule returns the longest place of layers that p lies in.
func rule(p string) (string, bool) {
	for ; ; p = path.Dir(p) {
		if p == "." {
			p = ""
		}
		if _, ok := layers[p]; ok {
			return p, true
		}
		if p == "" {
			return "", false
		}
	}
}

func within(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

// TestImportDirections holds the layers: imports run one way, and the SDK that
// authors link stays free of the host.
func TestImportDirections(t *testing.T) {
	packages := goList(t, "./...")
	if len(packages) < 10 {
		t.Fatalf("only %d packages listed", len(packages))
	}
	for _, p := range packages {
		mine := place(p.ImportPath)
		owner, ok := rule(mine)
		if !ok || owner == "" && mine != "" {
			t.Errorf("%s lies in no place of the architecture", p.ImportPath)
			continue
		}
		for _, imp := range p.Imports {
			if !strings.HasPrefix(imp, module) {
				continue
			}
			other := place(imp)
			if within(other, owner) || slices.ContainsFunc(layers[owner], func(a string) bool { return within(other, a) }) {
				continue
			}
			t.Errorf("%s imports %s; %q may import %v only", p.ImportPath, imp, owner, layers[owner])
		}
	}
}

// TestSDKLinksStandardLibraryOnly holds what the SDK promises its users.
func TestSDKLinksStandardLibraryOnly(t *testing.T) {
	for _, p := range goList(t, "-deps", "./sdk/plugin") {
		mine := slices.ContainsFunc([]string{"sdk/plugin", "schemas/manifest", "schemas/sessionmanifest", "schemas/subset", "schemas/format"},
			func(dir string) bool { return within(place(p.ImportPath), dir) })
		if !p.Standard && !mine {
			t.Errorf("sdk/plugin links %s", p.ImportPath)
		}
	}
}

// TestSwitchyardLinks holds what the program must not link: what is slow to load, and what
// speaks with servers.
func TestSwitchyardLinks(t *testing.T) {
	for _, p := range goList(t, "-deps", ".") {
		for _, heavy := range []string{"github.com/sigstore/", "github.com/spdx/", "github.com/santhosh-tekuri/", "google.golang.org/", "github.com/Masterminds/", "testing", "net/http", "crypto/tls"} {
			if strings.HasPrefix(p.ImportPath, heavy) || p.ImportPath == "net" {
				t.Errorf("switchyard links %s", p.ImportPath)
			}
		}
	}
}

// TestStart holds what docs/performance.md says of start-up: of this module's packages
// that the program links, and that a plugin links with the SDK, none allocates while it
// is initialised.
func TestStart(t *testing.T) {
	for _, program := range []string{".", "./sdk/examples/repo-facts"} {
		exe := filepath.Join(t.TempDir(), "program")
		if out, err := exec.Command("go", "build", "-o", exe, program).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", program, err, out)
		}
		cmd := exec.Command(exe, "version")
		cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", program, err, out)
		}
		if !strings.Contains(string(out), "init runtime ") {
			t.Fatalf("%s: no trace of initialisation:\n%s", program, out)
		}
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, "init "+module) && !strings.Contains(line, "/commands/firstheap ") && !strings.Contains(line, " 0 allocs") {
				t.Errorf("%s: %s", program, line)
			}
		}
	}
}
