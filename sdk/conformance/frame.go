package conformance

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// A frame is one that the program sent.
type frame struct {
	size     int             // N
	text     json.RawMessage // the whole envelope
	kind     string          // messageType
	envelope map[string]json.RawMessage
	body     json.RawMessage
	request  string // requestId of the body, "" if it has none or null
	arrived  time.Time
}

// maxReceived bounds what the runner reads as one frame: twice the most that it
// ever allows.
const maxReceived = 16 << 20

// readFrame reads one frame. io.EOF is the orderly end between two frames.
func readFrame(r io.Reader) ([]byte, error) {
	var prefix [4]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		if err == io.ErrUnexpectedEOF {
			return nil, fmt.Errorf("the output ends within the length of a frame: % x", prefix)
		}
		return nil, err
	}
	n := binary.BigEndian.Uint32(prefix[:])
	if n == 0 || n > maxReceived {
		return nil, fmt.Errorf("a frame of %d bytes; its prefix is % x (%q)", n, prefix, prefix[:])
	}
	text := make([]byte, n)
	if got, err := io.ReadFull(r, text); err != nil {
		return nil, fmt.Errorf("a frame of %d bytes ends after %d", n, got)
	}
	return text, nil
}

// framed returns text with its length before it.
func framed(text string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
}

// newUUID returns a UUID of version 7 (RFC 9562 §5.7).
func newUUID() string {
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		panic(err) // crypto/rand never fails
	}
	milliseconds := uint64(time.Now().UnixMilli())
	var at [8]byte
	binary.BigEndian.PutUint64(at[:], milliseconds)
	copy(id[:6], at[2:])
	id[6] = 0x70 | id[6]&0x0f
	id[8] = 0x80 | id[8]&0x3f
	h := hex.EncodeToString(id[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
