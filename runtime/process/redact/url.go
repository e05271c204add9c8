package redact

import "strings"

// appendURLs masks the user information of URLs: "scheme://user:pass@host".
func appendURLs(found []span, line string) []span {
	wordStop := 0 // where the word that holds the URL ends
	for at := 0; ; {
		i := strings.Index(line[at:], "://")
		if i < 0 {
			return found
		}
		start := at + i + len("://")
		at = start
		if start > wordStop {
			wordStop = len(line)
			if j := strings.IndexAny(line[start:], " \t\"'<>`"); j >= 0 {
				wordStop = start + j
			}
		}
		rest := line[start:max(start, wordStop)]
		// A colon that no port number follows begins a password, in which "/",
		// "?" and "#" may stand unescaped.
		authority := rest
		if j := strings.IndexAny(rest, "/?#"); j >= 0 && !hasPassword(rest[:j]) {
			authority = rest[:j]
		}
		end := strings.LastIndexByte(authority, '@')
		if end <= 0 {
			continue
		}
		if user := authority[:end]; strings.IndexByte(user, ':') >= 0 || !plainUser(user) {
			found = append(found, span{start, start + end})
		}
		at = start + end
	}
}

// hasPassword reports whether s, what stands before the first "/", has a colon
// followed by something else than a port, and is not a bracketed IPv6 host.
func hasPassword(s string) bool {
	_, after, ok := strings.Cut(s, ":")
	if !ok || strings.HasPrefix(s, "[") || strings.IndexByte(s, '@') >= 0 {
		return false
	}
	return after == "" || strings.Trim(after, "0123456789") != ""
}

// plainUser reports whether a user name without password is just a name, as in
// "ssh://git@host": short and without digits.
func plainUser(user string) bool {
	return len(user) <= 16 && !hasDigit(user)
}
