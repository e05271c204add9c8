package archive

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// A tarWriter writes files in the ustar form, with a pax header before those
// whose path the form cannot hold.
type tarWriter struct {
	*counter
	compressor io.Closer
	size       int64 // of the current file
}

func newTarWriter(w io.WriteCloser) *tarWriter {
	return &tarWriter{counter: &counter{w: w}, compressor: w}
}

func (t *tarWriter) begin(path string, size int64, executable bool) error {
	mode := int64(0o644)
	if executable {
		mode = 0o755
	}
	prefix, name, ok := splitUstar(path)
	if !ok {
		record := paxRecord("path", path)
		if err := t.header("pax", "", int64(len(record)), 0o644, 'x'); err != nil {
			return err
		}
		if _, err := io.WriteString(t, record); err != nil {
			return err
		}
		if err := t.fill(int64(len(record))); err != nil {
			return err
		}
		name = shorten(path)
	}
	t.size = size
	return t.header(name, prefix, size, mode, '0')
}

func (t *tarWriter) end() error { return t.fill(t.size) }

func (t *tarWriter) close() (int64, error) {
	_, err := t.Write(make([]byte, 2*tarBlock))
	if e := t.compressor.Close(); err == nil {
		err = e
	}
	return t.n, err
}

// fill pads contents of the given size to whole blocks.
func (t *tarWriter) fill(size int64) error {
	_, err := t.Write(make([]byte, -size&(tarBlock-1)))
	return err
}

func (t *tarWriter) header(name, prefix string, size, mode int64, flag byte) error {
	var b [tarBlock]byte
	copy(b[0:100], name)
	copy(b[100:108], fmt.Sprintf("%07o", mode))
	copy(b[108:116], "0000000") // owner
	copy(b[116:124], "0000000") // group
	copy(b[124:136], fmt.Sprintf("%011o", size))
	copy(b[136:148], "00000000000") // time
	b[156] = flag
	copy(b[257:265], "ustar\x0000")
	copy(b[329:337], "0000000") // device
	copy(b[337:345], "0000000")
	copy(b[345:500], prefix)
	copy(b[148:156], fmt.Sprintf("%06o\x00 ", tarChecksum(&b)))
	_, err := t.Write(b[:])
	return err
}

// splitUstar divides a path between the header's two fields, if it is ASCII and
// they can hold it.
func splitUstar(path string) (prefix, name string, ok bool) {
	if !isASCII(path) {
		return "", "", false
	}
	if len(path) <= 100 {
		return "", path, true
	}
	i := strings.IndexByte(path[len(path)-101:], '/')
	if i < 0 {
		return "", "", false
	}
	i += len(path) - 101
	return path[:i], path[i+1:], i > 0 && i <= 155
}

// shorten makes the name that readers without pax see.
func shorten(path string) string {
	var b strings.Builder
	for _, r := range path {
		if r >= 0x80 {
			r = '_'
		}
		b.WriteRune(r)
	}
	return b.String()[:min(b.Len(), 100)]
}

// paxRecord returns "LENGTH KEYWORD=VALUE\n", whose length counts itself.
func paxRecord(key, value string) string {
	rest := " " + key + "=" + value + "\n"
	n := len(rest)
	for n != len(rest)+len(strconv.Itoa(n)) {
		n = len(rest) + len(strconv.Itoa(n))
	}
	return strconv.Itoa(n) + rest
}
