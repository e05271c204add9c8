package python_test

import (
	"encoding/json"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/switchyard-plugins/switchyard/sdk/python/pythontest"
)

// A pythonAPI is what tests/public_api.py prints.
type pythonAPI struct {
	Names map[string]struct {
		Kind    string
		Members map[string]string // "field" or "method"
	}
	Constants map[string][]any
}

// pythonSource is what tests/public_api.py printed, once it was asked for.
var pythonSource struct {
	once sync.Once
	out  []byte
	err  error
}

func readPython(t *testing.T) pythonAPI {
	t.Helper()
	pythonSource.once.Do(func() {
		pythonSource.out, pythonSource.err = command(pythontest.Interpreter(t), "tests/public_api.py").Output()
	})
	out, err := pythonSource.out, pythonSource.err
	if err != nil {
		t.Fatal(err)
	}
	var api pythonAPI
	if err := json.Unmarshal(out, &api); err != nil {
		t.Fatal(err)
	}
	return api
}

// hasConstant reports whether a constant of some module is the value, or has it among others.
func (a pythonAPI) hasConstant(value any) bool {
	for _, list := range a.Constants {
		for _, c := range list {
			if c == value {
				return true
			}
			among, _ := c.([]any)
			for _, one := range among {
				if one == value {
					return true
				}
			}
		}
	}
	return false
}

// A goPackage is the exported part of one, read from its source.
type goPackage struct {
	types     map[string]ast.Expr
	aliases   map[string]string              // of a type: its package and name
	members   map[string]map[string]ast.Expr // of a type: fields (their types) and methods (nil)
	functions map[string]bool
	constants map[string]ast.Expr
	variables map[string]bool
}

// parseFiles reads the files of a directory whose names are wanted, for every platform.
func parseFiles(t *testing.T, dir string, wanted func(name string) bool) []*ast.File {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, path := range paths {
		if !wanted(path) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	if len(files) == 0 {
		t.Fatalf("%s has no such file", dir)
	}
	return files
}

func parsePackage(t *testing.T, dir string) *goPackage {
	t.Helper()
	p := &goPackage{
		types: map[string]ast.Expr{}, aliases: map[string]string{}, members: map[string]map[string]ast.Expr{},
		functions: map[string]bool{}, constants: map[string]ast.Expr{}, variables: map[string]bool{},
	}
	for _, file := range parseFiles(t, dir, func(name string) bool { return !strings.HasSuffix(name, "_test.go") }) {
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				p.function(d)
			case *ast.GenDecl:
				for _, s := range d.Specs {
					p.spec(d.Tok, s)
				}
			}
		}
	}
	return p
}

func (p *goPackage) member(of, name string, what ast.Expr) {
	if p.members[of] == nil {
		p.members[of] = map[string]ast.Expr{}
	}
	p.members[of][name] = what
}

func (p *goPackage) function(d *ast.FuncDecl) {
	if !d.Name.IsExported() {
		return
	}
	if d.Recv == nil {
		p.functions[d.Name.Name] = true
		return
	}
	of := d.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if name, ok := of.(*ast.Ident); ok && name.IsExported() {
		p.member(name.Name, d.Name.Name, nil)
	}
}

func (p *goPackage) spec(tok token.Token, s ast.Spec) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return
		}
		p.types[s.Name.Name] = s.Type
		if s.Assign.IsValid() {
			if sel, ok := s.Type.(*ast.SelectorExpr); ok {
				p.aliases[s.Name.Name] = sel.X.(*ast.Ident).Name + "." + sel.Sel.Name
			}
		}
		var list *ast.FieldList
		switch what := s.Type.(type) {
		case *ast.StructType:
			list = what.Fields
		case *ast.InterfaceType:
			list = what.Methods
		default:
			return
		}
		for _, f := range list.List {
			for _, name := range f.Names {
				if name.IsExported() {
					p.member(s.Name.Name, name.Name, f.Type)
				}
			}
		}
	case *ast.ValueSpec:
		for i, name := range s.Names {
			if !name.IsExported() {
				continue
			}
			if tok == token.CONST && i < len(s.Values) {
				p.constants[name.Name] = s.Values[i]
			} else if tok == token.VAR {
				p.variables[name.Name] = true
			}
		}
	}
}

// A goAPI is sdk/plugin and the packages whose types and constants it passes on.
type goAPI struct {
	*goPackage
	others map[string]*goPackage
}

func readGo(t *testing.T) goAPI {
	t.Helper()
	api := goAPI{parsePackage(t, "../plugin"), map[string]*goPackage{}}
	for _, dir := range []string{"../plugin/wire", "../../schemas/manifest", "../../schemas/sessionmanifest", "../../schemas/subset"} {
		api.others[path.Base(dir)] = parsePackage(t, dir)
	}
	return api
}

// find returns where a type is defined: PACKAGE.NAME, or NAME of sdk/plugin.
func (a goAPI) find(name string) (p *goPackage, local string) {
	if alias, ok := a.aliases[name]; ok {
		name = alias
	}
	pkg, local, ok := strings.Cut(name, ".")
	if !ok {
		return a.goPackage, name
	}
	return a.others[pkg], local
}

// membersOf returns the fields and methods of a type.
func (a goAPI) membersOf(name string) map[string]ast.Expr {
	p, local := a.find(name)
	if p == nil {
		return nil
	}
	return p.members[local]
}

// has reports whether a name, TYPE.MEMBER or a path of fields, TYPE.FIELD.FIELD, exists.
func (a goAPI) has(name string) bool {
	pkg, rest, _ := strings.Cut(name, ".")
	p := a.others[pkg]
	if p == nil {
		p, rest = a.goPackage, name
	}
	parts := strings.Split(rest, ".")
	if len(parts) == 1 {
		_, isType := p.types[rest]
		_, isConstant := p.constants[rest]
		return isType || isConstant || p.functions[rest] || p.variables[rest]
	}
	if p == a.goPackage {
		p, parts[0] = a.find(parts[0])
	}
	at := parts[0]
	for i, field := range parts[1:] {
		what, ok := p.members[at][field]
		if !ok {
			return false
		}
		if i < len(parts)-2 {
			if star, ok := what.(*ast.StarExpr); ok {
				what = star.X
			}
			next, ok := what.(*ast.Ident)
			if !ok {
				return false
			}
			at = next.Name
		}
	}
	return true
}

// value is that of a constant: a string, or a number as JSON has it; nil if it is not known.
func (a goAPI) value(p *goPackage, e ast.Expr) any {
	v := a.constant(p, e)
	switch v.Kind() {
	case constant.String:
		return constant.StringVal(v)
	case constant.Int:
		f, _ := constant.Float64Val(v)
		return f
	}
	return nil
}

func (a goAPI) constant(p *goPackage, e ast.Expr) constant.Value {
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(e.Value, e.Kind, 0)
	case *ast.UnaryExpr:
		return constant.UnaryOp(e.Op, a.constant(p, e.X), 0)
	case *ast.BinaryExpr:
		if e.Op == token.SHL {
			n, _ := constant.Uint64Val(a.constant(p, e.Y))
			return constant.Shift(a.constant(p, e.X), token.SHL, uint(n))
		}
	case *ast.Ident:
		if next, ok := p.constants[e.Name]; ok {
			return a.constant(p, next)
		}
	case *ast.SelectorExpr:
		if q := a.others[e.X.(*ast.Ident).Name]; q != nil {
			return a.constant(q, q.constants[e.Sel.Name])
		}
	}
	return constant.MakeUnknown()
}

// snake writes a Go name as Python does: PermissionsGrantID is permissions_grant_id.
func snake(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if unicode.IsUpper(r) && i > 0 && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
