// Package items is what both sides of the rows about sessions exchange: the payload of a
// round trip, and the items of a stream.
package items

import (
	"encoding/json"
	"strconv"
)

// Payload is what goes there and back in one round trip.
const Payload = `{"path":"docs/guide/first-steps.md","word":"switchyard","count":3,"lines":[12,57,101],"exact":true}`

// Append appends item n of a stream. As a session carries it, its whole frame has about
// 400 bytes.
func Append(dst []byte, n int) []byte {
	dst = strconv.AppendInt(append(dst, `{"n":`...), int64(n), 10)
	return append(dst, `,"word":"switchyard"}`...)
}

// Count is the request for a stream of n items.
func Count(n int) json.RawMessage {
	return append(strconv.AppendInt([]byte(`{"n":`), int64(n), 10), '}')
}

// ReadCount returns n of a Count.
func ReadCount(payload []byte) (int, error) {
	var count struct {
		N int `json:"n"`
	}
	err := json.Unmarshal(payload, &count)
	return count.N, err
}
