package commands

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/runtime"
	"github.com/switchyard-plugins/switchyard/runtime/call"
	"github.com/switchyard-plugins/switchyard/runtime/process"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// What the command layer lets through to the host is the user's request all the same.
func TestRequestsNobodyCanBeAskedAreUsage(t *testing.T) {
	in := newInvocation(newFakeEnv(t, "run", "demo", "operate", "note").Env)
	in.entry = find("run")
	for _, c := range []struct {
		err  error
		code string
	}{
		{fmt.Errorf("%w: operate needs an action", runtime.ErrRequest), "usage"},
		{fmt.Errorf("operate: %w: 2097152 bytes", call.ErrTooLarge), "input.invalid"},
		{fmt.Errorf("operate: input %w", call.ErrInput), "input.invalid"},
	} {
		if f := in.classify(c.err); f.exit != exitUsage || f.code != c.code || f.hint != "switchyard help run" {
			t.Errorf("%v: %+v", c.err, f)
		}
	}
}

// What a plugin's answer says is wanting has a command of its own.
func TestHintsOfAnswers(t *testing.T) {
	in := newInvocation(newFakeEnv(t, "run", "demo", "a/b").Env)
	in.entry, in.subject = find("run"), "demo"
	receipt := &wire.Receipt{ReceiptID: wire.NewUUID()}
	for code, hint := range map[wire.Code]string{
		wire.CodeSecretUnresolved:   "switchyard help secrets set",
		wire.CodeDeprecatedSunset:   "switchyard review demo",
		wire.CodeFailedPrecondition: "switchyard receipts show " + receipt.ReceiptID.String(),
	} {
		if f := in.classify(&wire.Error{Code: code, Message: "no", Receipt: receipt}); f.hint != hint || f.code != string(code) {
			t.Errorf("%s: %+v", code, f)
		}
	}
}

// A call that another process asked to stop ends like one that a signal stopped, with a
// code of its own, as docs/exit-codes.md says.
func TestStoppedCalls(t *testing.T) {
	in := newInvocation(newFakeEnv(t, "run", "demo", "operate", "note").Env)
	in.entry = find("run")
	for _, c := range []struct {
		cause error
		code  string
	}{{context.Canceled, "interrupted"}, {pkgmgr.ErrCancelled, "cancelled"}} {
		f := in.classify(&runtime.Stopped{ID: "demo", Operation: "o1", Cause: c.cause})
		if f.exit != exitInterrupted || f.code != c.code || f.hint != "switchyard operations show o1" {
			t.Errorf("%v: %+v", c.cause, f)
		}
	}
	page, err := os.ReadFile("../docs/exit-codes.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "exits 130\nalthough nobody interrupted it") {
		t.Error("docs/exit-codes.md does not say that a cancelled run exits 130")
	}
}

// Processes that a sweep cannot end are told once and keep no command from its work;
// what else went wrong does.
func TestSurvivorsAreAWarning(t *testing.T) {
	other := errors.New("the disk is full")
	survivors := &process.SurvivorError{PIDs: []int{12}}
	for _, c := range []struct {
		err, want error
		warned    bool
	}{
		{nil, nil, false},
		{survivors, nil, true},
		{errors.Join(state.ErrReadOnly, survivors), nil, true},
		{errors.Join(other, survivors), other, true},
		{other, other, false},
	} {
		env := newFakeEnv(t, "list")
		in := newInvocation(env.Env)
		for range 2 {
			if err := in.swept(1, c.err); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Errorf("%v: %v", c.err, err)
			}
		}
		said := env.err.String()
		if n := strings.Count(said, "warning: a killed command left processes that could not be ended: [12]"); (n == 1) != c.warned || n > 1 {
			t.Errorf("%v: said %d times in %q", c.err, n, said)
		}
		if !strings.Contains(said, "Ended 1 process that") {
			t.Errorf("%v: %q", c.err, said)
		}
	}
}

// docs/exit-codes.md names every code that the program prints or records, and no other.
func TestCodesAreDocumented(t *testing.T) {
	documented, err := errorCodes()
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for _, dir := range []string{".", "../runtime", "../runtime/call", "../runtime/session", "../sdk/plugin/wire", "../pkgmgr", "../pkgmgr/state", "../verify", "../verify/policy"} {
		eachSource(t, dir, func(name string, f *ast.File) { collectCodes(name, f, found) })
	}
	if len(found) < 50 {
		t.Fatalf("only %d codes found in the source", len(found))
	}
	for code, where := range found {
		if !slices.Contains(documented, code) {
			t.Errorf("%s: code %q is not in docs/exit-codes.md", where, code)
		}
	}
	for _, code := range documented {
		if found[code] == "" {
			t.Errorf("docs/exit-codes.md: nothing has the code %q", code)
		}
	}
}

// collectCodes finds the literals that become codes: what is assigned to a variable or
// member called code, constants of a type Code or whose names begin so, what a function called Code returns,
// and the kinds of things that are not found.
func collectCodes(name string, f *ast.File, found map[string]string) {
	add := func(prefix string, e ast.Expr) {
		lit, ok := e.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return
		}
		if text, err := strconv.Unquote(lit.Value); err == nil && text != "" {
			found[prefix+strings.ReplaceAll(text, " ", "_")] = name
		}
	}
	named := func(e ast.Expr, want string) bool {
		switch e := e.(type) {
		case *ast.Ident:
			return strings.EqualFold(e.Name, want)
		case *ast.SelectorExpr:
			return strings.EqualFold(e.Sel.Name, want)
		}
		return false
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if named(left, "code") && len(n.Rhs) == len(n.Lhs) {
					add("", n.Rhs[i])
				}
			}
		case *ast.KeyValueExpr:
			if named(n.Key, "code") {
				add("", n.Value)
			}
		case *ast.CompositeLit:
			for _, e := range n.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok && named(n.Type, "NotFound") && named(kv.Key, "Kind") {
					add("not_found.", kv.Value)
				}
			}
		case *ast.ValueSpec:
			for i, v := range n.Values {
				if n.Type != nil && named(n.Type, "Code") || strings.HasPrefix(n.Names[i].Name, "Code") && !strings.HasPrefix(n.Names[i].Name, "Codec") {
					add("", v)
				}
			}
		case *ast.FuncDecl:
			if named(n.Name, "Code") {
				ast.Inspect(n.Body, func(n ast.Node) bool {
					if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) > 0 {
						add("", r.Results[0])
					}
					return true
				})
			}
		}
		return true
	})
}

// The hint of a call that could not be recorded mends the cause where that is known;
// else an operation is looked at by its id, and any other call's host by doctor.
func TestUnrecordedHints(t *testing.T) {
	in := newInvocation(newFakeEnv(t, "run", "demo", "operate", "note").Env)
	in.entry = find("run")
	lost := func(err error) *runtime.Unrecorded { return &runtime.Unrecorded{ID: "demo", Call: "c1", Err: err} }
	for _, c := range []struct {
		err  error
		hint string
	}{
		{&unrecordedAnswer{lost(state.ErrMissing), runData{Method: "operate"}}, "switchyard doctor --repair"},
		{&unrecordedAnswer{lost(errors.New("disk full")), runData{Method: "operate"}}, "switchyard operations show c1"},
		{&unrecordedAnswer{lost(errors.New("disk full")), actionsData{}}, "switchyard doctor"},
		{lost(errors.New("disk full")), "switchyard doctor"},
	} {
		if f := in.classify(c.err); f.exit != exitFailed || f.code != "call.unrecorded" || f.hint != c.hint {
			t.Errorf("%v: %+v, want hint %s", c.err, f, c.hint)
		}
	}
}
