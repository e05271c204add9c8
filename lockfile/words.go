package lockfile

import (
	"fmt"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"
)

// CheckPlatform returns nil for Any and for "os/arch" in Go's names, and an error
// that matches ErrPlatform and says what is wrong otherwise.
func CheckPlatform(key string) error {
	if key == Any {
		return nil
	}
	goos, goarch, ok := strings.Cut(key, "/")
	if !ok {
		return fmt.Errorf("%w: \"%s\" is not \"%s\" or of the form os/arch", ErrPlatform, key, Any)
	}
	if !knownOS(goos) {
		return fmt.Errorf("%w: unknown operating system \"%s\" in \"%s\"%s", ErrPlatform, goos, key, goName(goos))
	}
	if !knownArch(goarch) {
		return fmt.Errorf("%w: unknown architecture \"%s\" in \"%s\"%s", ErrPlatform, goarch, key, goName(goarch))
	}
	return nil
}

// knownOS and knownArch are the names of `go tool dist list`.
func knownOS(s string) bool {
	switch s {
	case "aix", "android", "darwin", "dragonfly", "freebsd", "illumos", "ios", "js", "linux",
		"netbsd", "openbsd", "plan9", "solaris", "wasip1", "windows":
		return true
	}
	return false
}

func knownArch(s string) bool {
	switch s {
	case "386", "amd64", "arm", "arm64", "loong64", "mips", "mips64", "mips64le", "mipsle",
		"ppc64", "ppc64le", "riscv64", "s390x", "wasm":
		return true
	}
	return false
}

// goName hints at Go's spelling of a name that other tools use.
func goName(s string) string {
	var name string
	switch strings.ToLower(s) {
	case "macos", "osx", "darwin":
		name = "darwin"
	case "win", "win32", "win64", "windows":
		name = "windows"
	case "linux":
		name = "linux"
	case "x86_64", "x64", "amd64":
		name = "amd64"
	case "aarch64", "arm64":
		name = "arm64"
	case "x86", "i386", "i686":
		name = "386"
	default:
		return ""
	}
	return fmt.Sprintf("; Go's name is \"%s\"", name)
}

// CheckToken accepts a scope or a kind of evidence: a lower-case letter, then up
// to 127 of lower-case letters, digits and ". _ : -". Which scopes exist is the
// protocols' affair.
func CheckToken(s string) error {
	ok := len(s) > 0 && len(s) <= 128 && s[0] >= 'a' && s[0] <= 'z'
	for i := 0; ok && i < len(s); i++ {
		c := s[i]
		ok = c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("._:-", c) >= 0
	}
	if !ok {
		return fmt.Errorf("\"%s\" is not a name of lower-case letters, digits and \". _ : -\"", s)
	}
	return nil
}

// CheckSource says what is wrong with a source that a project file names: it
// must hold on every machine that checks the project out, and carry no secret.
func CheckSource(s string) error {
	switch {
	case len(s) > MaxSource:
		return fmt.Errorf("has %d bytes; at most %d are allowed", len(s), MaxSource)
	case !utf8.ValidString(s):
		return fmt.Errorf("is not UTF-8")
	case strings.Contains(s, `\`):
		return fmt.Errorf(`holds a backslash; write paths with "/"`)
	}
	if err := checkPlaceholders(s); err != nil {
		return err
	}
	if IsURL(s) {
		return checkURL(s)
	}
	switch {
	case strings.HasPrefix(s, "/"):
		return fmt.Errorf("is an absolute path; write it relative to this file")
	case strings.Contains(s, ":"):
		return fmt.Errorf("holds a colon and is no URL; write a path relative to this file")
	case strings.HasPrefix(s, "~"):
		return fmt.Errorf(`starts with "~", which means nothing here; write a path relative to this file`)
	}
	return nil
}

func checkPlaceholders(s string) error {
	rest := s
	for {
		i := strings.IndexAny(rest, "{}")
		if i < 0 {
			return nil
		}
		end := strings.IndexByte(rest[i:], '}')
		if rest[i] == '}' || end < 0 {
			return fmt.Errorf("has an unpaired brace; placeholders are {version}, {os} and {arch}")
		}
		switch name := rest[i : i+end+1]; name {
		case "{version}", "{os}", "{arch}":
		default:
			return fmt.Errorf("has the unknown placeholder \"%s\"; known are {version}, {os} and {arch}", name)
		}
		rest = rest[i+end+1:]
	}
}

// checkURL parses a URL with its placeholders filled, so that braces in a host
// do not count as syntax.
func checkURL(s string) error {
	u, err := url.Parse(strings.NewReplacer("{", "", "}", "").Replace(s))
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return fmt.Errorf("is not a valid URL")
	case u.Scheme != "https" && u.Scheme != "oci":
		return fmt.Errorf("has the scheme \"%s\"; only https and oci are allowed", u.Scheme)
	case u.User != nil:
		return fmt.Errorf("holds credentials; project files are committed and must hold none")
	case u.Fragment != "" || strings.Contains(s, "#"):
		return fmt.Errorf("holds a fragment, which names no file")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return fmt.Errorf("is not a valid URL")
	}
	for name := range query {
		if secretName(name) {
			return fmt.Errorf("holds credentials in the query member \"%s\"; project files are committed and must hold none", name)
		}
	}
	return nil
}

func secretName(name string) bool {
	name = strings.ToLower(name)
	switch name {
	case "key", "sig", "auth", "pass", "pwd":
		return true
	}
	for _, part := range []string{"token", "secret", "password", "signature", "credential", "apikey", "api_key", "api-key"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// IsURL reports whether a source is a URL and not a path.
func IsURL(source string) bool { return strings.Contains(source, "://") }

// CleanSource gives equal paths equal spellings: "./a//b" is "a/b". URLs stand
// as they are.
func CleanSource(s string) string {
	if s == "" || IsURL(s) {
		return s
	}
	return path.Clean(s)
}

// checkLine accepts a value of 1 to limit characters that is not blank. That it
// holds no control or invisible characters is checked for every string.
func checkLine(s string, limit int) error {
	n := utf8.RuneCountInString(s)
	if n == 0 || n > limit {
		return fmt.Errorf("must have 1 to %d characters, has %d", limit, n)
	}
	if strings.TrimSpace(s) != s {
		return fmt.Errorf("must not start or end with space")
	}
	return nil
}
