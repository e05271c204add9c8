package render

import (
	"fmt"
	"unicode/utf8"
)

// JSON returns document, which is valid UTF-8 JSON, with every character inside
// its strings that Text would escape written as \uXXXX: the same data, safe to
// show on a terminal.
func JSON(document []byte) []byte {
	plain := true
	for _, c := range document {
		if c >= utf8.RuneSelf || c == 0x7f {
			plain = false
			break
		}
	}
	if plain {
		return document
	}
	out := make([]byte, 0, len(document)+64)
	for i := 0; i < len(document); {
		r, size := utf8.DecodeRune(document[i:])
		switch {
		case r < ' ' || Visible(r): // below a space stands only white space between the tokens
			out = append(out, document[i:i+size]...)
		case r >= 0x10000:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		i += size
	}
	return out
}
