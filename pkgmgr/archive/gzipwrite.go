package archive

import (
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"io"
)

// A gzipWriter writes one gzip member without a name or a time.
type gzipWriter struct {
	w     io.Writer
	flate *flate.Writer
	crc   uint32
	size  uint32
}

func newGzipWriter(w io.Writer) (*gzipWriter, error) {
	const unknownSystem = 255
	if _, err := w.Write([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, unknownSystem}); err != nil {
		return nil, err
	}
	z, err := flate.NewWriter(w, flate.BestCompression)
	return &gzipWriter{w: w, flate: z}, err
}

func (g *gzipWriter) Write(p []byte) (int, error) {
	g.crc = crc32.Update(g.crc, crc32.IEEETable, p)
	g.size += uint32(len(p))
	return g.flate.Write(p)
}

func (g *gzipWriter) Close() error {
	if err := g.flate.Close(); err != nil {
		return err
	}
	b := binary.LittleEndian.AppendUint32(nil, g.crc)
	b = binary.LittleEndian.AppendUint32(b, g.size)
	_, err := g.w.Write(b)
	return err
}
