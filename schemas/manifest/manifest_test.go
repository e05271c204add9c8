package manifest_test

import (
	"errors"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

func valid() manifest.Manifest {
	return manifest.Manifest{
		SchemaVersion:   "switchyard.plugin-manifest/v1",
		ID:              "repo-facts",
		Name:            "Repository facts",
		Version:         "1.0.0",
		ProtocolVersion: "switchyard.plugin/v1",
		Executable:      "bin/repo-facts",
		Arguments:       []string{"--quiet"},
		Capabilities:    []manifest.Capability{"project.inspect", "project.operate"},
		RequestedScopes: []manifest.Scope{"project.metadata.read", "project.files.read", "project.operate"},
	}
}

// problems returns the broken rules; it fails the test on another kind of error.
func problems(t *testing.T, m manifest.Manifest) []manifest.Problem {
	t.Helper()
	err := m.Validate()
	if err == nil {
		return nil
	}
	var invalid *manifest.Invalid
	if !errors.As(err, &invalid) || len(invalid.Problems) == 0 {
		t.Fatalf("%v (%T)", err, err)
	}
	for _, p := range invalid.Problems {
		if !strings.Contains(err.Error(), p.Path+": "+p.Message) {
			t.Errorf("%q does not name %v", err, p)
		}
	}
	return invalid.Problems
}

func TestValid(t *testing.T) {
	long := strings.Repeat("x", 4096)
	for name, change := range map[string]func(*manifest.Manifest){
		"as it is":                 func(*manifest.Manifest) {},
		"shortest":                 func(m *manifest.Manifest) { m.ID, m.Name, m.Version, m.Executable = "a", "n", "1", "x" },
		"longest id":               func(m *manifest.Manifest) { m.ID = "a" + strings.Repeat("-", 63) },
		"longest name":             func(m *manifest.Manifest) { m.Name = strings.Repeat("é", 60) },
		"longest version":          func(m *manifest.Manifest) { m.Version = strings.Repeat("9", 64) },
		"longest path":             func(m *manifest.Manifest) { m.Executable = strings.Repeat("x/", 119) + "xy" },
		"a version that is none":   func(m *manifest.Manifest) { m.Version = "nightly_2024!1:2~é+x" },
		"path that is cleaned":     func(m *manifest.Manifest) { m.Executable = "./bin//a/../tool" },
		"dots that are no parent":  func(m *manifest.Manifest) { m.Executable = "..bin/...tool" },
		"manifest name further in": func(m *manifest.Manifest) { m.Executable = "bin/plugin.json" },
		"no arguments":             func(m *manifest.Manifest) { m.Arguments = []string{} },
		"most arguments":           func(m *manifest.Manifest) { m.Arguments = slices.Repeat([]string{long}, 32) },
		"empty argument":           func(m *manifest.Manifest) { m.Arguments = []string{"", "", "\x01\n"} },
		"inspect alone": func(m *manifest.Manifest) {
			m.Capabilities, m.RequestedScopes = caps("project.inspect"), scopes("project.metadata.read")
		},
		"operate alone": func(m *manifest.Manifest) {
			m.Capabilities, m.RequestedScopes = caps("project.operate"), scopes("project.operate")
		},
		"any order":                 func(m *manifest.Manifest) { slices.Reverse(m.Capabilities); slices.Reverse(m.RequestedScopes) },
		"scope without its purpose": func(m *manifest.Manifest) { m.Capabilities = caps("project.inspect") },
	} {
		m := valid()
		change(&m)
		if p := problems(t, m); p != nil {
			t.Errorf("%s: %v", name, p)
		}
	}
}

func caps(c ...manifest.Capability) []manifest.Capability { return c }

func scopes(s ...manifest.Scope) []manifest.Scope { return s }

func TestInvalid(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*manifest.Manifest)
		path   string
		says   string
	}{
		"other schema":       {func(m *manifest.Manifest) { m.SchemaVersion = "switchyard.plugin-manifest/v2" }, "schemaVersion", `"switchyard.plugin-manifest/v1"`},
		"no schema":          {func(m *manifest.Manifest) { m.SchemaVersion = "" }, "schemaVersion", "must be"},
		"other protocol":     {func(m *manifest.Manifest) { m.ProtocolVersion = "switchyard.plugin/v1 " }, "protocolVersion", `"switchyard.plugin/v1"`},
		"bad id":             {func(m *manifest.Manifest) { m.ID = "Repo" }, "id", "must match"},
		"no name":            {func(m *manifest.Manifest) { m.Name = "" }, "name", "1 to 120 bytes"},
		"long name":          {func(m *manifest.Manifest) { m.Name = strings.Repeat("é", 61) }, "name", "has 122"},
		"blank name":         {func(m *manifest.Manifest) { m.Name = " \u00a0" }, "name", "blank"},
		"control in name":    {func(m *manifest.Manifest) { m.Name = "a\x1b[2J" }, "name", "control"},
		"C1 control in name": {func(m *manifest.Manifest) { m.Name = "a\u009b" }, "name", "control"},
		"name not UTF-8":     {func(m *manifest.Manifest) { m.Name = "a\xff" }, "name", "UTF-8"},
		"invisible name":     {func(m *manifest.Manifest) { m.Name = "\u3164\u200b \u2800" }, "name", "visible character"},
		"combining name":     {func(m *manifest.Manifest) { m.Name = "\u0301" }, "name", "visible character"},
		"no version":         {func(m *manifest.Manifest) { m.Version = "" }, "version", "1 to 64 bytes"},
		"long version":       {func(m *manifest.Manifest) { m.Version = strings.Repeat("1", 65) }, "version", "has 65"},
		"control in version": {func(m *manifest.Manifest) { m.Version = "1\n2" }, "version", "control"},
		"no executable":      {func(m *manifest.Manifest) { m.Executable = "" }, "executable", "empty"},
		"long path":          {func(m *manifest.Manifest) { m.Executable = strings.Repeat("x", 241) }, "executable", "240 bytes"},
		"absolute":           {func(m *manifest.Manifest) { m.Executable = "/bin/sh" }, "executable", "relative"},
		"parent":             {func(m *manifest.Manifest) { m.Executable = "../tool" }, "executable", "inside the package"},
		"hidden parent":      {func(m *manifest.Manifest) { m.Executable = "bin/../../tool" }, "executable", "inside the package"},
		"only the parent":    {func(m *manifest.Manifest) { m.Executable = "bin/../.." }, "executable", "inside the package"},
		"the package":        {func(m *manifest.Manifest) { m.Executable = "./" }, "executable", "inside the package"},
		"a directory":        {func(m *manifest.Manifest) { m.Executable = "bin/" }, "executable", "inside the package"},
		"the manifest":       {func(m *manifest.Manifest) { m.Executable = "x/../plugin.json" }, "executable", "the manifest itself"},
		"backslash":          {func(m *manifest.Manifest) { m.Executable = `bin\tool.exe` }, "executable", `"/"`},
		"drive":              {func(m *manifest.Manifest) { m.Executable = "C:/tool.exe" }, "executable", "drive"},
		"stream":             {func(m *manifest.Manifest) { m.Executable = "tool.exe:x" }, "executable", "stream"},
		"NUL in path":        {func(m *manifest.Manifest) { m.Executable = "bin/a\x00" }, "executable", "control"},
		"path not UTF-8":     {func(m *manifest.Manifest) { m.Executable = "bin/\xff" }, "executable", "UTF-8"},
		"nil arguments":      {func(m *manifest.Manifest) { m.Arguments = nil }, "arguments", "required"},
		"33 arguments":       {func(m *manifest.Manifest) { m.Arguments = make([]string, 33) }, "arguments", "has 33"},
		"long argument":      {func(m *manifest.Manifest) { m.Arguments = []string{"", strings.Repeat("x", 4097)} }, "arguments[1]", "has 4097"},
		"argument, bytes":    {func(m *manifest.Manifest) { m.Arguments = []string{strings.Repeat("é", 2049)} }, "arguments[0]", "has 4098"},
		"NUL in argument":    {func(m *manifest.Manifest) { m.Arguments = []string{"a\x00b"} }, "arguments[0]", "NUL"},
		"argument not UTF-8": {func(m *manifest.Manifest) { m.Arguments = []string{"\xff"} }, "arguments[0]", "UTF-8"},
		"no capability":      {func(m *manifest.Manifest) { m.Capabilities = caps() }, "capabilities", "has 0"},
		"nil capabilities":   {func(m *manifest.Manifest) { m.Capabilities = nil }, "capabilities", "has 0"},
		"unknown capability": {func(m *manifest.Manifest) { m.Capabilities[1] = "project.delete" }, "capabilities[1]", `"project.delete" is not a capability`},
		"capability's case":  {func(m *manifest.Manifest) { m.Capabilities[0] = "Project.Inspect" }, "capabilities[0]", "is not a capability"},
		"capability twice":   {func(m *manifest.Manifest) { m.Capabilities[1] = m.Capabilities[0] }, "capabilities[1]", "occurs twice"},
		"inspect needs":      {func(m *manifest.Manifest) { m.RequestedScopes = scopes("project.operate") }, "capabilities[0]", `needs "project.metadata.read"`},
		"operate needs":      {func(m *manifest.Manifest) { m.RequestedScopes = scopes("project.metadata.read") }, "capabilities[1]", `needs "project.operate"`},
		"nil scopes":         {func(m *manifest.Manifest) { m.RequestedScopes = nil; m.Capabilities = caps("x") }, "requestedScopes", "required"},
		"unknown scope":      {func(m *manifest.Manifest) { m.RequestedScopes[1] = "network" }, "requestedScopes[1]", `"network" is not a scope`},
		"scope twice":        {func(m *manifest.Manifest) { m.RequestedScopes[1] = m.RequestedScopes[0] }, "requestedScopes[1]", "occurs twice"},
		"foreign text, shortened": {func(m *manifest.Manifest) {
			m.RequestedScopes[1] = manifest.Scope("\x1b" + strings.Repeat("x", 60_000))
		}, "requestedScopes[1]", `"\x1bxxx`},
	} {
		m := valid()
		m.Capabilities, m.RequestedScopes = slices.Clone(m.Capabilities), slices.Clone(m.RequestedScopes)
		c.change(&m)
		found := false
		for _, p := range problems(t, m) {
			found = found || p.Path == c.path && strings.Contains(p.Message, c.says)
			if len(p.Message) > 300 || strings.ContainsAny(p.Message, "\x1b\n") {
				t.Errorf("%s: message %.400q", name, p.Message)
			}
		}
		if !found {
			t.Errorf("%s: %v; want %s: %s", name, m.Validate(), c.path, c.says)
		}
	}
}

func TestTooManyElements(t *testing.T) {
	m := valid()
	m.Capabilities = make([]manifest.Capability, 17)
	m.RequestedScopes = make([]manifest.Scope, 17)
	found := map[string]bool{}
	for _, p := range problems(t, m) {
		found[p.Path+": "+p.Message] = true
	}
	for _, want := range []string{"capabilities: must have 1 to 16 elements, has 17", "requestedScopes: must have at most 16 elements, has 17"} {
		if !found[want] {
			t.Errorf("%q is not among %v", want, found)
		}
	}
}

// All broken rules are told, in the order of the members.
func TestEveryProblem(t *testing.T) {
	got := problems(t, manifest.Manifest{})
	var paths []string
	for _, p := range got {
		paths = append(paths, p.Path)
	}
	want := []string{"schemaVersion", "id", "name", "version", "protocolVersion", "executable", "arguments", "capabilities", "requestedScopes"}
	if !slices.Equal(paths, want) {
		t.Errorf("%v, want %v", paths, want)
	}
}

func TestCheckID(t *testing.T) {
	for _, id := range []string{"a", "repo-facts", "a.b.c", "a--", "a1", "console", "con-x", "nul1", "com", "com10", "lpt-1", "aux0", strings.Repeat("z", 64)} {
		if err := manifest.CheckID(id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	for _, id := range []string{
		"", "1a", "-a", ".a", "A", "aB", "a_b", "a b", "a/b", `a\b`, "a:b", "é", "aé", "a\x00", "a\n", strings.Repeat("z", 65),
		"a.", "a..", "con", "prn", "aux", "nul", "com1", "com0", "lpt9", "con.x", "nul.tar.gz", "com1.x",
	} {
		if err := manifest.CheckID(id); !errors.Is(err, manifest.ErrID) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// The matcher by hand matches what the pattern in the documents does.
func FuzzCheckID(f *testing.F) {
	pattern := regexp.MustCompile(`^[a-z][a-z0-9.-]{0,63}$`)
	reserved := regexp.MustCompile(`^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)`)
	ids := []string{"", "a", "repo-facts", "con", "com1.x", "a.", "z\n", "\x80", "á", strings.Repeat("a", 64), strings.Repeat("a", 65), "`", "{", "a/", "a:"}
	for _, id := range ids {
		f.Add(id)
	}
	if len(ids) == 0 {
		f.Fatal("no seeds")
	}
	f.Fuzz(func(t *testing.T, id string) {
		want := pattern.MatchString(id) && !reserved.MatchString(id) && id[len(id)-1] != '.'
		if err := manifest.CheckID(id); (err == nil) != want {
			t.Errorf("%q: %v", id, err)
		}
	})
}

func TestVocabulary(t *testing.T) {
	for _, c := range manifest.Capabilities {
		if !slices.Contains(manifest.Scopes, c.Requires()) {
			t.Errorf("%s requires %q", c, c.Requires())
		}
	}
	unknown := manifest.Scope("x").Meaning()
	seen := map[string]bool{unknown: true}
	for _, s := range manifest.Scopes {
		if seen[s.Meaning()] {
			t.Errorf("%s has no meaning of its own", s)
		}
		seen[s.Meaning()] = true
	}
	if got := manifest.Capability("x").Requires(); got != "" {
		t.Errorf("an unknown capability requires %q", got)
	}
	m := valid()
	if !m.Has("project.inspect") || m.Has("x") || !m.Requests("project.operate") || m.Requests("x") {
		t.Error("Has or Requests is wrong")
	}
}

// Authors of plugins link this package: it must bring nothing with it.
// TestVersionText: a version can be typed as NAME@VERSION and read as what it is.
func TestVersionText(t *testing.T) {
	for _, version := range []string{"1", "1.0.0-rc.1+build.5", "2024_01", "1:2.0~rc1", "1!2", "v1", "größe", "=1", "1,2", "1^2", "1%2", "1#2", "日本"} {
		m := valid()
		if m.Version = version; m.Validate() != nil {
			t.Errorf("%q: %v", version, m.Validate())
		}
	}
	for _, version := range []string{
		"--force", "-1", "../../x", "1/2", `1\2`, "1@2", "1 2", " 1", "1 ", "1\u00a02", "1\u3000", "$(id)", "`id`", "1;id", "1|2", "1&", "a'b", `a"b`,
		"1>2", "1*", "1?", "[1]", "{1}", "(1)", "1\u200b", "\u3164", "\u2800", "1\u202e2", "1\u0301", "e\u0301", "1\ufe0f", "1\u00ad0", "1\ue000", "1\U000e0001",
		"1\ufeff", "1\u0378",
	} {
		m := valid()
		m.Version = version
		p := problems(t, m)
		if len(p) != 1 || p[0].Path != "version" {
			t.Errorf("%q: %v", version, p)
		}
	}
}

func TestStandardLibraryOnly(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := strings.Fields(string(out)); len(got) != 1 || !strings.HasSuffix(got[0], "/schemas/manifest") {
		t.Errorf("beside the standard library: %q", got)
	}
}
