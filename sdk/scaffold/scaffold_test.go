package scaffold

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/sdk/conformance"
	"github.com/switchyard-plugins/switchyard/sdk/plugin"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/plugintest"
	"github.com/switchyard-plugins/switchyard/sdk/python/pythontest"
)

func sample(t *testing.T) Project {
	t.Helper()
	sdk, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return Project{Language: "go", ID: "my-plugin", Name: `Say "hi" \o/ <now>`, Module: "example.com/me/my-plugin", SDK: sdk}
}

// TestProjectWorks writes a project and does what its Makefile does, without a
// network and without editing anything first.
func TestProjectWorks(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new project")
	p := sample(t)
	files, err := Write(dir, p)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{".gitignore", ".switchyardignore", "Makefile", "README.md", "go.mod", "main.go", "main_test.go", "plugin.json"}
	if !slices.Equal(files, want) {
		t.Errorf("wrote %q", files)
	}
	for _, flags := range []string{"", "-mod=mod"} {
		for _, args := range [][]string{{"vet", "./..."}, {"test", "./..."}, {"build", "-o", "bin/my-plugin", "."}} {
			c := exec.Command("go", args...)
			c.Dir = dir
			c.Env = append(os.Environ(), "GOFLAGS="+flags, "GOPROXY=off", "GOWORK=off")
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("GOFLAGS=%s go %s: %v\n%s", flags, strings.Join(args, " "), err, out)
			}
		}
	}
	plugintest.Run(t, plugintest.Config{Package: dir})

	text, err := os.ReadFile(filepath.Join(dir, "plugin.json"))
	if err != nil {
		t.Fatal(err)
	}
	if m, err := plugin.ParseManifest(text); err != nil || m.ID != p.ID || m.Name != p.Name || m.Executable != "bin/my-plugin" {
		t.Errorf("%+v, %v", m, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, left := range []string{starterID, starterName, starterModule} {
			if strings.Contains(string(text), left) {
				t.Errorf("%s still says %q", name, left)
			}
		}
	}
}

// TestPythonProjectWorks writes a Python project and does what its Makefile does.
func TestPythonProjectWorks(t *testing.T) {
	p := Project{Language: Python, ID: "org.example.my-plugin", Name: `Say "hi" \o/`}
	dir := filepath.Join(t.TempDir(), "new project")
	files, err := Write(dir, p)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{".gitignore", "Makefile", "plugin.json", "schemas/text.json", "switchyard_plugin/__init__.py", "switchyard_plugin/py.typed",
		"switchyard_plugin/wire/strictjson.py", "test_word_tools.py", "word_tools.py"} {
		if !slices.Contains(files, want) {
			t.Errorf("%s is not among %q", want, files)
		}
	}
	if !slices.IsSorted(files) {
		t.Errorf("not sorted: %q", files)
	}
	text, err := os.ReadFile(filepath.Join(dir, "plugin.json"))
	if err != nil {
		t.Fatal(err)
	}
	stated, err := digest.SessionManifest(text)
	if err != nil || !strings.Contains(string(text), `"manifestDigest": "`+string(stated)+`"`) ||
		!strings.Contains(string(text), `"pluginId": "org.example.my-plugin"`) || !strings.Contains(string(text), `"displayName": "Say \"hi\" \\o/"`) {
		t.Errorf("digest %s, %v\n%s", stated, err, text)
	}
	interpreter := pythontest.Interpreter(t)
	for _, args := range [][]string{{"-W", "error", "-B", "-m", "unittest"}, {"-B", "-m", "switchyard_plugin.seal"}} {
		c := exec.Command(interpreter, args...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("python3 %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		if args[len(args)-1] == "switchyard_plugin.seal" && !strings.Contains(string(out), "unchanged") {
			t.Errorf("the digests that init wrote are not those of the SDK: %s", out)
		}
	}
}

func TestPythonProjectIsChecked(t *testing.T) {
	for name, p := range map[string]Project{
		"id":               {Language: Python, ID: "my-plugin", Name: "x"},
		"name":             {Language: Python, ID: "org.example.x", Name: " "},
		"line in the name": {Language: Python, ID: "org.example.x", Name: "a\nb"},
	} {
		dir := filepath.Join(t.TempDir(), "new")
		if files, err := Write(dir, p); err == nil {
			t.Errorf("%s: wrote %q", name, files)
		}
	}
}

// TestStartersConform holds new projects, with no edit, to what their `make conformance`
// does. The Python one is compiled first, once and not at each of its starts.
func TestStartersConform(t *testing.T) {
	for _, c := range []struct {
		project Project
		build   []string
		command []string
		cases   int
	}{
		{sample(t), []string{"go", "build", "-o", "bin/my-plugin", "."}, []string{"bin/my-plugin"}, 62},
		{Project{Language: Python, ID: "org.example.my-plugin", Name: "Mine"}, []string{"python3", "-m", "compileall", "-q", "."},
			[]string{"python3", "-B", "-m", "switchyard_plugin", "word_tools", "create_plugin"}, 150},
	} {
		t.Run(c.project.Language, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "project")
			if _, err := Write(dir, c.project); err != nil {
				t.Fatal(err)
			}
			makefile, err := os.ReadFile(filepath.Join(dir, "Makefile"))
			if err != nil || !strings.Contains(string(makefile), "\tswitchyard conformance --package . -- "+strings.Join(c.command, " ")+"\n") {
				t.Errorf("the Makefile runs something else: %v\n%s", err, makefile)
			}
			if c.command[0] == "python3" {
				c.command[0] = pythontest.Interpreter(t)
				c.build[0] = c.command[0]
			} else {
				c.command[0] = filepath.Join(dir, c.command[0])
			}
			build := exec.Command(c.build[0], c.build[1:]...)
			build.Dir, build.Env = dir, append(os.Environ(), "GOPROXY=off", "GOWORK=off")
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			pkg, err := conformance.OpenPackage(dir)
			if err != nil {
				t.Fatal(err)
			}
			all, err := conformance.Cases()
			if err != nil {
				t.Fatal(err)
			}
			mine := pkg.Cases(all)
			if len(mine) != c.cases {
				t.Errorf("%d cases, docs/conformance.md says %d", len(mine), c.cases)
			}
			results, err := (&conformance.Runner{Command: c.command, Package: pkg, Patience: 20 * time.Second}).Run(t.Context(), mine)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range results {
				if r.Failure != nil {
					t.Errorf("%s: %s", r.Case.Name, r.Failure.Summary())
				}
			}
		})
	}
}

func TestReleasedSDK(t *testing.T) {
	p := sample(t)
	p.SDK, p.Version = "", "v1.2.3"
	files, err := p.render()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.name == "go.mod" && f.text != "module example.com/me/my-plugin\n\ngo 1.26.0\n\nrequire "+SDKModule+" v1.2.3\n" {
			t.Errorf("go.mod:\n%s", f.text)
		}
	}
}

func TestWriteOverwritesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "plugin.json"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	var exists *Exists
	if _, err := Write(dir, sample(t)); !errors.As(err, &exists) || exists.Path != filepath.Join(dir, "plugin.json") {
		t.Errorf("plugin.json exists: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	// Other files do not matter: a project may be started in a directory that
	// holds, say, .git.
	other := t.TempDir()
	if err := os.Mkdir(filepath.Join(other, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(other, sample(t)); err != nil {
		t.Error(err)
	}
}

func TestProjectIsChecked(t *testing.T) {
	for name, change := range map[string]func(*Project){
		"language":         func(p *Project) { p.Language = "cobol" },
		"id":               func(p *Project) { p.ID = "My Plugin" },
		"name":             func(p *Project) { p.Name = "" },
		"line in the name": func(p *Project) { p.Name = "a\nb" },
		"no module":        func(p *Project) { p.Module = "" },
		"module":           func(p *Project) { p.Module = "a\nreplace x => y" },
		"relative SDK":     func(p *Project) { p.SDK = "../sdk" },
		"version":          func(p *Project) { p.SDK, p.Version = "", "latest" },
	} {
		p := sample(t)
		change(&p)
		dir := filepath.Join(t.TempDir(), "new")
		if files, err := Write(dir, p); err == nil {
			t.Errorf("%s: wrote %q", name, files)
		}
		if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the directory was made", name)
		}
	}
}
