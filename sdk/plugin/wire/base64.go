package wire

import "encoding/base64"

// EncodeBytes writes bytes as the protocol wants them: base64url without padding.
func EncodeBytes(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// DecodeBytes reads what EncodeBytes writes and nothing else: no padding, no line
// ends, no bits set beyond the last byte.
func DecodeBytes(s string) ([]byte, bool) {
	for i := range len(s) {
		if s[i] == '\n' || s[i] == '\r' { // which the library skips
			return nil, false
		}
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	return b, err == nil
}
