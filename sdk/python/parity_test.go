package python_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/sdk-parity.md and the table of cases anew")

// A pair is two names for one thing that the rule of casing does not pair.
type pair struct{ Go, Python, Reason string }

// named are the reviewed pairs.
var named = []pair{
	{"NewSessionPlugin", "SessionPlugin", "a constructor"},
	{"NewPluginError", "PluginError", "a constructor"},
	{"LoadPackage", "Package.load", "a constructor beside the class"},
	{"SessionMain", "run", "serves the host that started the process, and ends it; Python's run takes plugins of both protocols"},
	{"ServeSession", "SessionPlugin.serve", "serves one connection; Python's handlers of a plugin are methods of it"},
	{"Main", "CallPlugin.run", "serves the host that started the process"},
	{"Serve", "CallPlugin.serve", "serves one connection"},
	{"OperationHandler", "SessionPlugin.operation", "Go names the function's type, Python's decorator has it as its bound"},
	{"SettingsValidator", "SessionPlugin.settings", "as for handlers"},
	{"Handler", "CallPlugin", "Go's interface of handlers is Python's class to register them with"},
	{"Handler.Health", "CallPlugin.health", "a method of the interface, a registered function"},
	{"Inspector.Inspect", "CallPlugin.inspect", "a method of the interface, a registered function"},
	{"Inspector", "CallPlugin.inspect", "the interface has one method"},
	{"Operator.Operate", "CallPlugin.operate", "a method of the interface, a registered function"},
	{"Operator", "CallPlugin.operate", "the interface has one method"},
	{"Error", "CallError", "errors of the call protocol; Python has a class of its own for everything that is raised"},
	{"Error.Code", "CallError.code", "the same member"},
	{"Error.Message", "CallError.message", "the same member"},
	{"Errorf", "CallError", "a constructor"},
	{"Granted", "InspectRequest.granted", "Go asks the context, Python the request"},
	{"Granted", "OperateRequest.granted", "Go asks the context, Python the request"},
	{"Granted", "InspectRequest.granted_scopes", "the whole list, of which Granted asks for one"},
	{"Granted", "OperateRequest.granted_scopes", "the whole list, of which Granted asks for one"},
	{"MustParseManifest", "CallPlugin.manifest", "the manifest that the program brings with it is an argument of CallPlugin"},
	{"ParseManifest", "CallPlugin", "the text of plugin.json is an argument of CallPlugin"},
	{"PackageManifest", "CallPlugin", "without an argument CallPlugin reads plugin.json from the package's directory"},
	{"Manifest", "CallPlugin.manifest", "a mapping in Python"},
	{"Operation.DecodePayload", "Operation.payload", "Python's payload is parsed; what the schema cannot say the handler checks"},
	{"Operation.DecodeSettings", "Operation.settings", "Python's settings are parsed"},
	{"OperateRequest.DecodeInput", "OperateRequest.input", "Python's input is parsed"},
	{"Package.Digest", "SessionManifest.manifest_digest", "the digest that the manifest states"},
	{"OperationReceipt.StartedAt", "OperationReceipt.started_at_utc", "Go has a time.Time, Python the text as it is on the wire"},
	{"OperationReceipt.IssuedAt", "OperationReceipt.issued_at_utc", "as for StartedAt"},
	{"OperationReceipt.ExpiresAt", "OperationReceipt.expires_at_utc", "as for StartedAt"},
	{"SessionManifest.Plugin.PluginID", "SessionManifest.plugin_id", "Python's members are without the levels of the document"},
	{"SessionManifest.Publisher.PublisherID", "SessionManifest.publisher_id", "as for plugin_id"},
	{"SessionManifest.Protocol.MinVersion", "SessionManifest.protocol_min_version", "as for plugin_id"},
	{"SessionManifest.Protocol.MaxVersion", "SessionManifest.protocol_max_version", "as for plugin_id"},
	{"SessionManifest.Protocol.Features", "SessionManifest.features", "as for plugin_id"},
	{"SessionManifest.DataDeclarations.AcceptedClasses", "SessionManifest.accepted_classes", "as for plugin_id"},
	{"SessionManifest.Lifecycle.RequiresHeartbeat", "SessionManifest.requires_heartbeat", "as for plugin_id"},
	{"SessionManifest.Settings.Schema", "SessionManifest.settings_schema", "as for plugin_id; the schema's URI"},
	{"SessionManifest.Settings.Version", "SessionManifest.settings_version", "as for plugin_id"},
	{"SessionManifest.Provenance.ManifestDigest", "SessionManifest.manifest_digest", "as for plugin_id"},
	{"SessionManifest.SchemaRefs", "SessionManifest.schema_digests", "the schemas that the manifest names, with their digests"},
	{"SessionManifest.Streams", "SessionPlugin.streams", "asked once, as the plugin is made"},
	{"SessionManifest.Validate", "Package.load", "Python reads no manifest without checking it"},
	{"SessionManifest.SchemaVersion", "SessionManifest.document", "one value is accepted; the document has it"},
	{"SessionManifest.Plugin", "SessionManifest.document", "document is the whole manifest"},
	{"SessionManifest.Publisher", "SessionManifest.document", "document is the whole manifest"},
	{"SessionManifest.Protocol", "SessionManifest.document", "document is the whole manifest"},
	{"SessionManifest.EntryPoints", "SessionManifest.document", "document is the whole manifest"},
	{"SessionManifest.Permissions", "SessionManifest.document", "document is the whole manifest"},
	{"SessionManifest.Settings", "SessionManifest.document", "document is the whole manifest"},
	{"SessionManifest.Runtime", "SessionManifest.document", "document is the whole manifest"},
	{"SessionManifest.Network", "SessionManifest.document", "document is the whole manifest"},
	{"SessionManifest.DataDeclarations", "SessionManifest.document", "document is the whole manifest"},
	{"SessionManifest.Lifecycle", "SessionManifest.document", "document is the whole manifest"},
	{"SessionManifest.Provenance", "SessionManifest.document", "document is the whole manifest"},
	{"sessionmanifest.Capability", "Capability", "sdk/plugin's own Capability is that of the call protocol"},
	{"sessionmanifest.Capability.ID", "Capability.id", "as for Capability"},
	{"sessionmanifest.Capability.Version", "Capability.version", "as for Capability"},
	{"sessionmanifest.Capability.Operations", "Capability.operations", "as for Capability"},
	{"sessionmanifest.Operation", "OperationSpec", "sdk/plugin's own Operation is what a handler gets"},
	{"sessionmanifest.Operation.Name", "OperationSpec.name", "as for OperationSpec"},
	{"sessionmanifest.Capability.ID", "OperationSpec.capability_id", "an OperationSpec knows its capability"},
	{"sessionmanifest.Operation.OperationVersion", "OperationSpec.operation_version", "as for OperationSpec"},
	{"sessionmanifest.Operation.RequestSchema", "OperationSpec.request_schema", "as for OperationSpec; the schema's URI"},
	{"sessionmanifest.Operation.ResponseSchema", "OperationSpec.response_schema", "as for OperationSpec; the schema's URI"},
	{"sessionmanifest.Operation.Streaming.Request", "OperationSpec.streams_request", "as for OperationSpec"},
	{"sessionmanifest.Operation.Streaming.Response", "OperationSpec.streams_response", "as for OperationSpec"},
	{"sessionmanifest.Operation.Idempotent", "OperationSpec.idempotent", "as for OperationSpec"},
	{"sessionmanifest.Operation.HasReceipts", "OperationSpec.receipts", "as for OperationSpec; with the default"},
	{"subset.Schema", "Schema", "Go's validator is a package of its own, which the host uses too"},
	{"subset.Schema.ID", "Schema.id", "as for Schema"},
	{"subset.Schema.Validate", "Schema.validate", "as for Schema"},
	{"subset.Compile", "Schema", "a constructor"},
	{"subset.Problem", "Problem", "as for Schema"},
	{"subset.Problem.Pointer", "Problem.path", "as for Schema"},
	{"subset.Problem.Code", "Problem.code", "as for Schema"},
	{"subset.Problem.Message", "Problem.message", "as for Schema"},
	{"subset.Invalid", "SchemaError", "as for Schema; Python tells the first fault"},
	{"subset.Problem.Pointer", "SchemaError.path", "as for Schema"},
	{"subset.Problem.Code", "SchemaError.code", "as for Schema"},
}

// An only is a name that one side has alone. Instead says what does the same on the other.
type only struct{ Name, Instead string }

var onlyGo = []only{
	{"Error.Error", "str() of the exception"},
	{"PluginError.Error", "str() of the exception"},
	{"SettingsError.Error", "str() of the exception"},
	{"OperationReceipt.AppendJSON", "the SDK's own: receipts are written by it"},
	{"OperationReceipt.Type", "the SDK's own: receipts are written by it"},
	{"Code.String", "the codes are numbers with names"},
	{"JSON", "handlers return any JSON value as it is"},
	{"ErrCancelled", "asyncio.CancelledError is raised in the handler, for whatever reason it is to end"},
	{"ErrDeadline", "asyncio.CancelledError, as for ErrCancelled"},
	{"ErrSessionClosed", "asyncio.CancelledError, as for ErrCancelled"},
	{"ErrInputClosed", "asyncio.CancelledError, as for ErrCancelled"},
	{"ErrNoPackage", "the program is started in its package's directory; CallPlugin says which file it lacks"},
	{"InitializeParams", "the SDK's own message: no handler sees it"},
	{"InitializeResult", "the SDK's own message: no handler sees it"},
	{"Identity", "the SDK's own message: no handler sees it"},
	{"Capability", "str: a word of the call protocol's manifest"},
	{"Scope", "str: a word of the protocol"},
	{"Code", "int: a number of the protocol"},
	{"HealthStatus", "str: a word of the protocol, checked where it is used"},
	{"OperateStatus", "str: a word of the protocol, checked where it is used"},
	{"PayloadClass", "str: a word of the protocol"},
	{"DiagnosticPolicy", "str: a word of the protocol"},
	{"Retention", "str: a word of the protocol"},
	{"EffectState", "str: a word of the protocol, checked where it is used"},
	{"ExecutionState", "str: a word of the protocol"},
	{"ErrorCode", "str: a word of the protocol, checked where it is used"},
}

var onlyPython = []only{
	{"HandlerError", "SessionPlugin.Check returns an error, Handle panics"},
	{"ManifestError", "an error of LoadPackage"},
	{"PackageError", "an error of LoadPackage"},
	{"ReceiptStore", "SWITCHYARD_PLUGIN_STATE says where receipts are; a test sets it"},
	{"ReceiptStore.directory", "as for ReceiptStore"},
	{"ReceiptStore.claim", "as for ReceiptStore"},
	{"ReceiptStore.find", "the test kit's Session.Receipt asks as a host does"},
	{"SessionPlugin.store", "as for ReceiptStore"},
	{"CallPlugin.check", "Main and Serve refuse a handler that lacks what its manifest declares"},
	{"Package.directory", "the argument of LoadPackage"},
	{"Package.schemas", "DecodePayload and the SDK's own checks; subset.Compile makes a schema of a document"},
	{"Schema.document", "the document that was compiled is the caller's"},
	{"Schema.defaults", "defaults are for readers; Go's settings handler decodes into a struct that holds them"},
	{"PluginError.receipt", "the SDK's own: what is told to the host beside a refusal"},
	{"PluginError.existing_operation_id", "the SDK's own: what is told to the host beside a refusal"},
	{"PluginError.blame_domain", "the SDK's own: what is told to the host"},
	{"SessionPlugin.run", "SessionMain serves and ends the process"},
}

// A row is one line of the table.
type row struct{ group, goName, pythonName, reason string }

// parity pairs the two and returns the table and what is wrong with it.
func parity(g goAPI, p pythonAPI) (rows []row, wrong []string) {
	fail := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	inPython := func(name string) bool {
		class, member, nested := strings.Cut(name, ".")
		n, ok := p.Names[class]
		if ok && nested {
			_, ok = n.Members[member]
		}
		return ok
	}
	// byRule is the Python name that the casing gives a Go name.
	byRule := func(name string) string {
		of, member, nested := strings.Cut(name, ".")
		if nested {
			return of + "." + snake(member)
		}
		if _, isType := g.types[name]; isType {
			return name
		}
		return snake(name)
	}
	goDone, pythonDone := map[string]bool{}, map[string]bool{}
	add := func(goName, pythonName, reason string) {
		group, _, _ := strings.Cut(cmp.Or(pythonName, goName), ".")
		rows = append(rows, row{group, goName, pythonName, reason})
		goDone[goName], pythonDone[pythonName] = true, true
	}
	for _, n := range named {
		switch {
		case n.Reason == "":
			fail("%s and %s have no reason", n.Go, n.Python)
		case !g.has(n.Go):
			fail("the table names %s, which Go does not have", n.Go)
		case !inPython(n.Python):
			fail("the table names %s, which Python does not have", n.Python)
		case byRule(n.Go) == n.Python && inPython(n.Python):
			// A type of the manifest's may have the name of another one; then the rule would pair the wrong two.
			fail("%s and %s need no line of their own: the rule pairs them", n.Go, n.Python)
		}
		add(n.Go, n.Python, n.Reason)
	}
	for _, o := range onlyGo {
		twin := byRule(o.Name)
		if o.Instead == "" || !g.has(o.Name) || inPython(twin) && !pythonDone[twin] {
			fail("%s: there is no such thing in Go, or it is in Python too, or has no reason", o.Name)
		}
		add(o.Name, "", o.Instead)
	}
	for _, o := range onlyPython {
		if o.Instead == "" || !inPython(o.Name) || pythonDone[o.Name] {
			fail("%s: there is no such thing in Python, or it is in Go too, or has no reason", o.Name)
		}
		add("", o.Name, o.Instead)
	}
	names := slices.Collect(maps.Keys(g.functions))
	names = slices.AppendSeq(names, maps.Keys(g.types))
	names = slices.AppendSeq(names, maps.Keys(g.variables))
	for t := range g.types {
		if slices.ContainsFunc(onlyGo, func(o only) bool { return o.Name == t }) {
			continue // without members of interest
		}
		for m := range g.membersOf(t) {
			if t != "Manifest" { // a mapping in Python, with the members of the document
				names = append(names, t+"."+m)
			}
		}
	}
	for _, name := range names {
		if goDone[name] {
			continue
		}
		if twin := byRule(name); inPython(twin) {
			add(name, twin, "")
		} else {
			fail("Go has %s, and Python has no %s", name, twin)
		}
	}
	for class, n := range p.Names {
		if !pythonDone[class] {
			fail("Python has %s, and Go has nothing of the kind", class)
		}
		for member := range n.Members {
			if name := class + "." + member; !pythonDone[name] {
				fail("Python has %s, and Go has nothing of the kind", name)
			}
		}
	}
	for name, e := range g.constants {
		value := g.value(g.goPackage, e)
		if value == nil || !p.hasConstant(value) {
			fail("Go has the constant %s = %v, and Python has no constant with that value", name, value)
		}
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.pythonName, b.pythonName), cmp.Compare(a.goName, b.goName))
	})
	slices.Sort(wrong)
	return rows, wrong
}

const parityHead = `# The two SDKs, side by side

This table is made from the source of ` + "`sdk/plugin`" + ` and ` + "`switchyard_plugin`" + `. A name in it is in both, in each language's casing; a test fails for one
that a side lacks. Where a line has a note, the names differ for a reason, or one language needs no such thing; the notes are kept by hand. Every constant
of ` + "`sdk/plugin`" + ` is a constant of a Python module too.

`

// TestParity holds the two public APIs to each other, and docs/sdk-parity.md to them.
// With -args -update it writes the document.
func TestParity(t *testing.T) {
	rows, wrong := parity(readGo(t), readPython(t))
	for _, w := range wrong {
		t.Error(w)
	}
	var b strings.Builder
	b.WriteString(parityHead + "| Go | Python | |\n| --- | --- | --- |\n")
	code := func(name string) string {
		if name == "" {
			return "—"
		}
		return "`" + name + "`"
	}
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", code(r.goName), code(r.pythonName), r.reason)
	}
	holdDocument(t, "../../docs/sdk-parity.md", b.String())
}

func holdDocument(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s is not fresh (%v): run go test ./sdk/python -run '^%s$' -args -update", path, err, t.Name())
	}
}

// TestParityFindsWhatIsMissing takes members away from each side and adds some.
func TestParityFindsWhatIsMissing(t *testing.T) {
	g := readGo(t)
	for _, name := range []string{"Operation.limits", "Grant.scope", "Package", "bad_input", "PluginError.retryable"} {
		p := readPython(t)
		class, member, nested := strings.Cut(name, ".")
		if nested {
			delete(p.Names[class].Members, member)
		} else {
			delete(p.Names, class)
		}
		if _, wrong := parity(g, p); len(wrong) == 0 {
			t.Errorf("Python without %s passes", name)
		}
	}
	p := readPython(t)
	p.Names["Operation"].Members["abandon"] = "method"
	if _, wrong := parity(g, p); len(wrong) != 1 {
		t.Errorf("a method that only Python has: %q", wrong)
	}
	delete(p.Names["Operation"].Members, "abandon")
	g.member("Operation", "Abandon", nil)
	if _, wrong := parity(g, p); len(wrong) != 1 {
		t.Errorf("a method that only Go has: %q", wrong)
	}
}
