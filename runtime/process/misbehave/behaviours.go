package misbehave

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// MaxMessage is the protocol's limit of a message, repeated here on purpose.
const MaxMessage = 1 << 20

// StderrFlood is how many bytes the behaviours "stderr-flood" and, twice,
// "stderr-no-text" write.
const StderrFlood = 10 << 20

// helpers are the processes that behaviours start; see tree.go.
var helpers = map[string]func(*plugin){
	"helper-middle": middle,
	"helper-leaf":   leaf,
	"helper-bomb":   bomb,
	"helper-chain":  chain,
}

var behaviours = map[string]behaviour{
	"good": {},

	// Ends and hangs.
	"exit-before-initialize":  {start: func(*plugin) { exit(0) }},
	"crash-before-initialize": {start: func(*plugin) { exit(3) }},
	"crash-at-initialize":     {initialize: func(*plugin, answer) { exit(4) }},
	"crash-at-method":         {method: func(*plugin, answer) { exit(5) }},
	"crash-after-answer":      {end: func(*plugin) { exit(6) }},
	"signal-at-method":        {method: func(*plugin, answer) { signalSelf() }},
	"truncated-at-method":     {method: func(_ *plugin, a answer) { raw(a.text()[:20]); exit(0) }},
	"hang-before-initialize":  {start: func(*plugin) { hang() }},
	"hang-at-initialize":      {initialize: func(*plugin, answer) { hang() }},
	"hang-at-method":          {method: func(*plugin, answer) { hang() }},
	"hang-in-message":         {method: func(_ *plugin, a answer) { raw(a.text()[:20]); hang() }},
	"stop-at-method":          {method: func(*plugin, answer) { stopSelf(); hang() }},
	"close-stdout":            {method: func(*plugin, answer) { os.Stdout.Close(); hang() }},
	"ignore-stdin-close":      {end: func(*plugin) { hang() }},
	"ignore-signals":          {start: func(*plugin) { ignoreSignals() }, method: func(*plugin, answer) { hang() }},

	// Messages.
	"banner":            {start: func(*plugin) { raw("Welcome to the example plugin!\n") }},
	"banner-at-method":  {method: func(_ *plugin, a answer) { raw("working on it...\n"); say(a.line()) }},
	"empty-line":        {method: func(_ *plugin, a answer) { raw("\n" + a.text() + "\n") }},
	"malformed":         edit(func(s string) string { return s[:len(s)-1] }),
	"malformed-init":    {initialize: func(*plugin, answer) { raw("{\"jsonrpc\":\"2.0\",\"id\":\n") }},
	"not-an-object":     edit(func(s string) string { return "[" + s + "]" }),
	"two-values":        edit(func(s string) string { return s + s }),
	"byte-order-mark":   edit(func(s string) string { return "\ufeff" + s }),
	"invalid-utf8":      edit(func(s string) string { return strings.Replace(s, `"2.0"`, "\"2.\xff0\"", 1) }),
	"duplicate-member":  edit(func(s string) string { return strings.Replace(s, `{`, `{"id":1,`, 1) }),
	"deep":              edit(func(s string) string { return withResult(s, strings.Repeat("[", 100)+strings.Repeat("]", 100)) }),
	"unknown-member":    edit(func(s string) string { return strings.Replace(s, `{`, `{"extra":1,`, 1) }),
	"unknown-in-result": edit(func(s string) string { return strings.Replace(s, `"result":{`, `"result":{"extra":1,`, 1) }),
	"wrong-case":        edit(func(s string) string { return strings.Replace(s, `"jsonrpc"`, `"JSONRPC"`, 1) }),
	"wrong-version":     edit(func(s string) string { return strings.Replace(s, `"2.0"`, `"1.0"`, 1) }),
	"wrong-id":          edit(func(s string) string { return strings.Replace(s, `"id":2`, `"id":7`, 1) }),
	"string-id":         edit(func(s string) string { return strings.Replace(s, `"id":2`, `"id":"2"`, 1) }),
	"null-id":           edit(func(s string) string { return strings.Replace(s, `"id":2`, `"id":null`, 1) }),
	"no-id":             edit(func(s string) string { return strings.Replace(s, `"id":2,`, ``, 1) }),
	"both":              edit(func(s string) string { return strings.Replace(s, `{`, `{"error":{"code":1,"message":"x"},`, 1) }),
	"neither":           edit(func(string) string { return `{"jsonrpc":"2.0","id":2}` }),
	"null-result":       edit(func(s string) string { return withResult(s, "null") }),
	"empty-result":      edit(func(s string) string { return withResult(s, "{}") }),
	"bad-status":        edit(func(s string) string { return withResult(s, `{"status":"great","checkedAt":"2024-01-01T00:00:00Z"}`) }),
	"bad-time":          edit(func(s string) string { return withResult(s, `{"status":"healthy","checkedAt":"2024-02-30 00:00"}`) }),
	"error-result":      edit(func(s string) string { return withError(s, -32000, "cannot do that") }),
	"error-scope":       edit(func(s string) string { return withError(s, -32003, "scope not granted") }),
	"error-code":        edit(func(s string) string { return withError(s, -32004, "a code of my own") }),
	"error-long":        edit(func(s string) string { return withError(s, -32000, strings.Repeat("m", 1025)) }),
	"error-longest":     edit(func(s string) string { return withError(s, -32000, strings.Repeat("m", 1024)) }),
	"error-method":      edit(func(s string) string { return withError(s, -32601, "unknown method") }),
	"error-state":       edit(func(s string) string { return withError(s, -32002, "not initialized") }),
	"error-init":        {initialize: func(_ *plugin, a answer) { raw(withError(a.text(), -32603, "cannot start") + "\n") }},
	"error-protocol":    {initialize: func(_ *plugin, a answer) { raw(withError(a.text(), -32001, "unsupported") + "\n") }},
	"secret-in-output":  edit(func(string) string { return "password=hunter2-canary" }),
	"control-in-output": edit(func(string) string { return "\x1b[31m\u202eoops\u200b" }),
	"extra-output":      {method: func(_ *plugin, a answer) { say(a.line()); say(a.line()) }},
	"extra-at-end":      {end: func(*plugin) { raw("bye\n") }},
	"early-answer":      {initialize: func(_ *plugin, a answer) { raw(a.text() + "\n" + a.text() + "\n") }},
	"endless":           {method: func(*plugin, answer) { endless() }},
	"size-below-limit":  edit(func(s string) string { return padded(s, MaxMessage-1) }),
	"size-at-limit":     edit(func(s string) string { return padded(s, MaxMessage) }),
	"size-above-limit":  edit(func(s string) string { return padded(s, MaxMessage+1) }),

	// Unusual but correct.
	"split":      {method: func(_ *plugin, a answer) { split(a.text() + "\n") }},
	"crlf":       {method: func(_ *plugin, a answer) { raw(a.text() + "\r\n") }},
	"no-newline": {method: func(_ *plugin, a answer) { raw(a.text()); exit(0) }},
	"spaces":     edit(func(s string) string { return "  " + strings.ReplaceAll(s, `,"`, "\t, \"") + " " }),

	// Identity.
	"mismatch-id":           inPlugin("id", "somebody-else"),
	"mismatch-name":         inPlugin("name", "Somebody else"),
	"mismatch-version":      inPlugin("version", "9.9.9"),
	"mismatch-schema":       inPlugin("schemaVersion", "switchyard.plugin-manifest/v2"),
	"mismatch-protocol":     inPlugin("protocolVersion", "switchyard.plugin/v2"),
	"mismatch-capabilities": inPlugin("capabilities", []any{"project.operate"}),
	"mismatch-scopes":       inPlugin("requestedScopes", []any{"project.metadata.read"}),
	"mismatch-negotiated":   inResult("protocolVersion", "switchyard.plugin/v0"),
	"mismatch-grants":       inResult("grantedScopes", []any{"project.operate", "project.files.read"}),
	"repeated-scope":        inResult("grantedScopes", []any{"project.metadata.read", "project.metadata.read"}),
	"reordered-identity":    {identity: reorder},

	// stderr.
	"stderr-flood":     {method: func(_ *plugin, a answer) { flood(); say(a.line()) }},
	"stderr-no-text":   {method: func(_ *plugin, a answer) { lineFeeds(); say(a.line()) }},
	"stderr-one-line":  {method: func(_ *plugin, a answer) { os.Stderr.Write(bytes.Repeat([]byte("x"), 1<<20)); say(a.line()) }},
	"stderr-secrets":   {method: func(_ *plugin, a answer) { secrets(); say(a.line()) }},
	"stderr-and-crash": {start: func(*plugin) { fmt.Fprintln(os.Stderr, "cannot open the database"); exit(3) }},
	"environment":      {method: func(_ *plugin, a answer) { fmt.Fprintln(os.Stderr, strings.Join(os.Environ(), "\n")); say(a.line()) }},

	// Processes left behind; see tree.go.
	"child":                     tree("hold"),
	"child-in-own-group":        tree("hold", "setpgid"),
	"child-in-own-session":      tree("hold", "setsid"),
	"daemon":                    tree("setsid", "double"),
	"daemon-holding-pipes":      tree("setsid", "double", "hold"),
	"daemon-without-mark":       tree("setsid", "double", "clear"),
	"daemon-without-any-mark":   tree("setsid", "double", "clear", "unlimit"),
	"daemon-ignoring-signals":   tree("setsid", "double", "ignore"),
	"daemon-stopped":            tree("setsid", "double", "stop"),
	"daemon-of-crash":           {method: func(p *plugin, _ answer) { p.daemon("setsid", "double", "hold"); exit(7) }},
	"daemon-of-hang":            {method: func(p *plugin, _ answer) { p.daemon("setsid", "double", "hold"); hang() }},
	"fork-bomb":                 {method: func(p *plugin, a answer) { p.spawn("helper-bomb", "4", "setsid"); say(a.line()) }},
	"fork-chain":                {method: func(p *plugin, a answer) { p.spawn("helper-chain", "300", "setsid"); say(a.line()) }},
	"daemon-before-initialize":  {start: func(p *plugin) { p.daemon("setsid", "double", "hold") }},
	"daemon-and-broken-message": {method: func(p *plugin, a answer) { p.daemon("setsid", "double", "hold"); raw("}\n") }},
}

func exit(code int) { os.Exit(code) }

// edit deviates in the text of a method's answer.
func edit(f func(string) string) behaviour {
	return behaviour{method: func(_ *plugin, a answer) { raw(f(a.text()) + "\n") }}
}

func withResult(s, result string) string {
	i := strings.Index(s, `"result":`)
	return s[:i] + `"result":` + result + "}"
}

func withError(s string, code int, message string) string {
	i := strings.Index(s, `"result":`)
	return s[:i] + fmt.Sprintf(`"error":{"code":%d,"message":%q}}`, code, message)
}

// padded makes the message exactly n bytes long by lengthening its first
// human-readable string.
func padded(s string, n int) string {
	for _, member := range []string{`"message":"`, `"summary":"`} {
		if i := strings.Index(s, member); i >= 0 {
			i += len(member)
			return s[:i] + strings.Repeat("x", n-len(s)) + s[i:]
		}
	}
	panic("nothing to lengthen in " + s)
}

func inResult(member string, value any) behaviour {
	return behaviour{identity: func(result map[string]any) any {
		result[member] = value
		return result
	}}
}

func inPlugin(member string, value any) behaviour {
	return behaviour{identity: func(result map[string]any) any {
		result["plugin"].(map[string]any)[member] = value
		return result
	}}
}

// reorder reverses every set of the identity, which changes nothing.
func reorder(result map[string]any) any {
	reverse := func(m map[string]any, member string) {
		list, _ := m[member].([]any)
		for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
			list[i], list[j] = list[j], list[i]
		}
	}
	reverse(result, "grantedScopes")
	reverse(result["plugin"].(map[string]any), "capabilities")
	reverse(result["plugin"].(map[string]any), "requestedScopes")
	return result
}

// split writes byte by byte.
func split(s string) {
	for i := range len(s) {
		raw(s[i : i+1])
	}
}

// endless writes without ever ending the line.
func endless() {
	chunk := strings.Repeat("x", 64<<10)
	raw(`{"jsonrpc":"2.0","id":2,"result":{"summary":"`)
	for {
		raw(chunk)
	}
}

// flood writes StderrFlood bytes in numbered lines of 64 bytes.
func flood() {
	var b bytes.Buffer
	for i := range StderrFlood / 64 {
		fmt.Fprintf(&b, "%063d\n", i)
		if b.Len() >= 64<<10 {
			os.Stderr.Write(b.Bytes())
			b.Reset()
		}
	}
	os.Stderr.Write(b.Bytes())
}

// lineFeeds writes twice StderrFlood bytes, each of them a line.
func lineFeeds() {
	chunk := bytes.Repeat([]byte{'\n'}, 1<<20)
	for range 2 * StderrFlood / len(chunk) {
		os.Stderr.Write(chunk)
	}
}

// secrets writes canary secrets in several forms; each contains "canary".
func secrets() {
	fmt.Fprintln(os.Stderr, "password=hunter2-canary")
	fmt.Fprintln(os.Stderr, "https://bob:canary@host.test/")
	fmt.Fprintln(os.Stderr, "-----BEGIN PRIVATE KEY-----\ncanarycanarycanary\n-----END PRIVATE KEY-----")
	fmt.Fprintln(os.Stderr, strings.Repeat("x", 2040)+` "token":"canarycanary"`)
	fmt.Fprintln(os.Stderr, "done")
}
