package sessionmanifest

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

func (v *validation) entryPoints(e EntryPoints) {
	const at = "/entryPoints"
	if e.Executable == nil && e.Python == nil && e.DotNet == nil {
		v.mismatch(at, "must have at least one of executable, python and dotnet")
	}
	if x := e.Executable; x != nil {
		v.file(at+"/executable/path", x.Path)
		v.arguments(at+"/executable/arguments", x.Arguments)
	}
	if p := e.Python; p != nil {
		v.dotted(at+"/python/module", p.Module)
		v.dotted(at+"/python/callable", p.Callable)
		v.minor(at+"/python/pythonVersion", p.Version)
	}
	if d := e.DotNet; d != nil {
		v.file(at+"/dotnet/assembly", d.Assembly)
		switch {
		case d.Type == "":
			v.mismatch(at+"/dotnet/type", "must not be empty")
		case len(d.Type) > MaxTypeName || strings.ContainsFunc(d.Type, unicode.IsControl) || d.Type[0] == '-':
			v.add(at+"/dotnet/type", CodeEntry, "must be a type's name of at most %d bytes without control characters", MaxTypeName)
		}
		switch {
		case d.TargetFramework == "":
			v.mismatch(at+"/dotnet/targetFramework", "must not be empty")
		case !isName(d.TargetFramework):
			v.add(at+"/dotnet/targetFramework", CodeEntry, "must be a framework's short name, as net8.0")
		}
	}
}

func (v *validation) file(at, p string) {
	if p == "" {
		v.mismatch(at, "must not be empty")
	} else if wrong := insidePackage(p); wrong != "" {
		v.add(at, CodePath, "%s", wrong)
	}
}

func (v *validation) arguments(at string, args []string) {
	if args == nil {
		v.mismatch(at, "is required (an empty array when there are none)")
	}
	if len(args) > MaxArguments {
		v.mismatch(at, "must have at most %d elements, has %d", MaxArguments, len(args))
		return
	}
	for i, a := range args {
		switch at := at + pointer(i); {
		case len(a) > MaxArgumentBytes:
			v.mismatch(at, "must have at most %d bytes, has %d", MaxArgumentBytes, len(a))
		case !utf8.ValidString(a) || strings.ContainsRune(a, 0):
			v.mismatch(at, "must be UTF-8 without NUL")
		}
	}
}

// dotted checks a Python name of ASCII identifiers with points between them.
func (v *validation) dotted(at, s string) {
	if s == "" {
		v.mismatch(at, "must not be empty")
		return
	}
	for _, part := range strings.Split(s, ".") {
		if part == "" || digit(part[0]) || !only(part, func(c byte) bool { return letter(c) || digit(c) || c == '_' }) || len(s) > MaxTypeName {
			v.add(at, CodeEntry, "must be ASCII identifiers of Python with points between them, as package.module")
			return
		}
	}
}
