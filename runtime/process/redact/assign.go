package redact

import "strings"

// A key class says how far the value of a key reaches.
type class int

const (
	word   class = iota // a token: no spaces inside
	phrase              // a password: an unquoted value after ": " may hold spaces
	header              // an HTTP header: to the end of the line or of the quotes around it
)

// keys are the names whose values are secret, lower-case with "_" for an
// optional "_", "-" or nothing between words. A name counts with any prefix
// ("dbPassword", "npm_config_token") and with a suffix that begins a new word
// ("secret_access_key", "tokenId").
var keys = []struct {
	name  string
	class class
}{
	{"password", phrase}, {"passwd", phrase}, {"passphrase", phrase}, {"passcode", phrase},
	{"pwd", phrase}, {"_pass", phrase}, {"pass", phrase}, {"secret", phrase}, {"credential", phrase},
	{"token", word}, {"api_key", word}, {"access_key", word}, {"private_key", word},
	{"account_key", word}, {"auth_key", word}, {"encryption_key", word}, {"signing_key", word},
	{"session_id", word}, {"session_key", word}, {"_auth", word},
	{"authorization", header}, {"cookie", header},
}

// appendAssignments masks the values of secret keys in these forms:
//
//	k=v  k: v  k := v  k => v  "k":"v"  'k': 'v'  \"k\":\"v\"  k="v w"
//	--k v  --k=v  -k v  <k>v</k>  login u password v  K: v w (headers)
func appendAssignments(found []span, line, lower string) []span {
	for _, k := range keys {
		first, rest, joined := strings.Cut(strings.TrimPrefix(k.name, "_"), "_")
		for at := 0; ; {
			i := strings.Index(lower[at:], first)
			if i < 0 {
				break
			}
			start := at + i
			end := start + len(first)
			at = end
			if joined {
				end += separatorLen(lower[end:])
				if !strings.HasPrefix(lower[end:], rest) {
					continue
				}
				end += len(rest)
			}
			if bounded(k.name, line, start, end) {
				if s, ok := valueOf(k.class, line, lower, start, end); ok {
					found = append(found, s)
					at = max(at, s.end)
				}
			}
		}
	}
	return found
}

func separatorLen(s string) int {
	if s != "" && (s[0] == '_' || s[0] == '-') {
		return 1
	}
	return 0
}

// bounded reports whether line[start:end] is the key or a word of it. "pass"
// and "_auth" must begin a word, "tokens" and "tokenizer" are no tokens.
func bounded(name, line string, start, end int) bool {
	switch name {
	case "_pass", "_auth":
		if start == 0 || line[start-1] != '_' && line[start-1] != '-' {
			return false
		}
	case "pass":
		if start > 0 && isWord(line[start-1]) {
			return false
		}
		// "PASS: TestX" is no password; "pass=x" is.
		if next := strings.TrimLeft(line[end:], " \t"); !strings.HasPrefix(next, "=") && (start == 0 || line[start-1] != '-') {
			return false
		}
	}
	if end == len(line) {
		return false
	}
	next := line[end]
	if next == 's' && name != "token" && end+1 < len(line) && !isLetter(line[end+1]) {
		return true // plural
	}
	return !isLetter(next) || isUpper(next) && !isUpper(line[end-1])
}

// valueOf finds the value of the key whose last known word is line[start:end].
func valueOf(c class, line, lower string, start, end int) (span, bool) {
	keyStart := start
	for keyStart > 0 && (isWord(line[keyStart-1]) || line[keyStart-1] == '.') {
		keyStart--
	}
	for end < len(line) && isWord(line[end]) {
		end++
	}
	// Closing quotes and brackets of the key, colours, spaces.
	at := skip(line, end, "\\\"'`])* \t")
	value := -1
	switch rest := line[at:]; {
	case strings.HasPrefix(rest, "://"):
		return span{}, false
	case strings.HasPrefix(rest, ":") || strings.HasPrefix(rest, "="):
		value = at + len(rest) - len(strings.TrimLeft(rest, ":=>"))
	case strings.HasPrefix(rest, "->"):
		value = at + 2
	case strings.HasPrefix(rest, ">") && keyStart > 0 && line[keyStart-1] == '<':
		tag, _, _ := strings.Cut(line[at+1:], "<")
		return span{at + 1, at + 1 + len(tag)}, tag != ""
	case at > end && isFlag(line, keyStart, end),
		at > end && c == phrase && netrc(lower[:keyStart]):
		value = at
	case c == header && strings.HasPrefix(rest, ","), c == header && strings.HasPrefix(rest, "["):
		value = at + 1
	default:
		return span{}, false
	}
	spaced := value < len(line) && (line[value] == ' ' || line[value] == '\t')
	value = skip(line, value, " \t")
	if value >= len(line) {
		return span{}, false
	}
	if c == header {
		return headerValue(line, keyStart, value), true
	}
	if s, ok := quoted(line, value); ok {
		return s, s.end > s.start
	}
	stop := len(line)
	if c == word || !spaced {
		stop = wordEnd(line, value)
		if scheme := lower[value:stop]; scheme == "bearer" || scheme == "basic" || scheme == "token" {
			stop = wordEnd(line, skip(line, stop, " \t"))
		}
	}
	return span{value, stop}, !harmless(lower[value:stop])
}

// isFlag reports whether the key is a command-line flag followed by a space.
func isFlag(line string, keyStart, end int) bool {
	return line[keyStart] == '-' && end < len(line) && (line[end] == ' ' || line[end] == '\t')
}

// netrc reports whether the words before "password" are those of a netrc line.
func netrc(before string) bool {
	return strings.Contains(before, "login ") || strings.Contains(before, "machine ")
}

// headerValue reaches to the quote that closes the header, or the value, or to
// the end of the line.
func headerValue(line string, keyStart, value int) span {
	if s, ok := quoted(line, value); ok {
		return s
	}
	if keyStart > 0 {
		if q := line[keyStart-1]; q == '"' || q == '\'' {
			if i := strings.IndexByte(line[value:], q); i >= 0 {
				return span{value, value + i}
			}
		}
	}
	return span{value, len(line)}
}

// quoted returns the inside of the quotes that begin at value, if any do. The
// quotes may be escaped, as in JSON inside a string, and may have a Python
// prefix; if they do not close, the value reaches to the end of the line.
func quoted(line string, value int) (span, bool) {
	at := value
	if at+1 < len(line) && strings.IndexByte("bBuUrR", line[at]) >= 0 && (line[at+1] == '"' || line[at+1] == '\'') {
		at++
	}
	escapes := 0
	for at < len(line) && line[at] == '\\' {
		at++
		escapes++
	}
	if at >= len(line) || strings.IndexByte("\"'`", line[at]) < 0 {
		return span{}, false
	}
	quote := line[at]
	start := at + 1
	if strings.HasPrefix(line[start:], string([]byte{quote, quote})) { // """x"""
		return span{start, len(line)}, true
	}
	backslashes := 0
	for i := start; i < len(line); i++ {
		switch {
		case line[i] == '\\':
			backslashes++
			continue
		case line[i] == quote && (backslashes == escapes || escapes == 0 && backslashes%2 == 0):
			return span{start, i - escapes}, true
		}
		backslashes = 0
	}
	return span{start, len(line)}, true
}

func wordEnd(line string, at int) int {
	if i := strings.IndexAny(line[at:], " \t"); i >= 0 {
		return at + i
	}
	return len(line)
}

// harmless values are shown: they are no secrets and help a reader.
func harmless(value string) bool {
	switch strings.TrimRight(value, ",;.)}]>") {
	case "", "true", "false", "null", "nil", "none", "undefined", "<nil", "<none", "*", "**", "***", "****":
		return true
	}
	return false
}

// skip advances over the given bytes and over terminal colour sequences.
func skip(line string, at int, set string) int {
	for at < len(line) {
		if strings.IndexByte(set, line[at]) >= 0 {
			at++
			continue
		}
		if line[at] != 0x1b || at+1 >= len(line) || line[at+1] != '[' {
			break
		}
		end := at + 2
		for end < len(line) && (line[end] < 0x40 || line[end] > 0x7e) {
			end++
		}
		at = min(end+1, len(line))
	}
	return at
}

func isLetter(b byte) bool { return b >= 'a' && b <= 'z' || isUpper(b) }
func isUpper(b byte) bool  { return b >= 'A' && b <= 'Z' }
func isWord(b byte) bool   { return isLetter(b) || b >= '0' && b <= '9' || b == '_' || b == '-' }
