package archive

import (
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"io"
)

// A zipWriter writes a zip whose sizes follow each file's data. The bounds on
// sizes and entries keep it clear of zip64.
type zipWriter struct {
	w       *counter
	flate   *flate.Writer
	entries []zipEntry
}

const (
	zipVersion = 20
	// zipTime and zipDate are 1980-01-01 00:00:00, the format's first moment.
	zipTime = 0
	zipDate = 1<<5 | 1
)

func newZipWriter(w io.Writer) *zipWriter { return &zipWriter{w: &counter{w: w}} }

func (z *zipWriter) begin(path string, size int64, executable bool) error {
	e := zipEntry{name: path, size: size, mode: unixRegular | 0o644, header: z.w.n, flags: zipFlagUTF8, method: zipStore}
	if executable {
		e.mode = unixRegular | 0o755
	}
	if size > 0 {
		e.flags |= zipFlagDescriptor
		e.method = zipDeflate
	}
	h := binary.LittleEndian.AppendUint32(nil, zipLocalSig)
	h = e.appendCommon(h, 0, 0, 0)
	h = append(h, path...)
	if _, err := z.w.Write(h); err != nil {
		return err
	}
	e.data = z.w.n
	z.entries = append(z.entries, e)
	if z.flate == nil {
		var err error
		if z.flate, err = flate.NewWriter(z.w, flate.BestCompression); err != nil {
			return err
		}
	}
	z.flate.Reset(z.w)
	return nil
}

// appendCommon writes what the local and the central header have in common.
func (e *zipEntry) appendCommon(b []byte, crc uint32, packed, size int64) []byte {
	b = binary.LittleEndian.AppendUint16(b, zipVersion)
	b = binary.LittleEndian.AppendUint16(b, e.flags)
	b = binary.LittleEndian.AppendUint16(b, e.method)
	b = binary.LittleEndian.AppendUint16(b, zipTime)
	b = binary.LittleEndian.AppendUint16(b, zipDate)
	b = appendSizes(b, crc, packed, size)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(e.name)))
	return binary.LittleEndian.AppendUint16(b, 0) // no extra fields
}

func appendSizes(b []byte, crc uint32, packed, size int64) []byte {
	b = binary.LittleEndian.AppendUint32(b, crc)
	b = binary.LittleEndian.AppendUint32(b, uint32(packed))
	return binary.LittleEndian.AppendUint32(b, uint32(size))
}

func (z *zipWriter) Write(p []byte) (int, error) {
	e := &z.entries[len(z.entries)-1]
	e.crc = crc32.Update(e.crc, crc32.IEEETable, p)
	return z.flate.Write(p)
}

func (z *zipWriter) end() error {
	e := &z.entries[len(z.entries)-1]
	if e.size == 0 {
		return nil
	}
	if err := z.flate.Close(); err != nil {
		return err
	}
	e.packed = z.w.n - e.data
	d := binary.LittleEndian.AppendUint32(nil, zipDataSig)
	_, err := z.w.Write(appendSizes(d, e.crc, e.packed, e.size))
	return err
}

func (z *zipWriter) close() (int64, error) {
	start, unpacked := z.w.n, int64(0)
	for i := range z.entries {
		e := &z.entries[i]
		unpacked += e.size
		h := binary.LittleEndian.AppendUint32(nil, zipCentralSig)
		h = binary.LittleEndian.AppendUint16(h, zipHostUnix<<8|zipVersion)
		h = e.appendCommon(h, e.crc, e.packed, e.size)
		h = append(h, make([]byte, 6)...) // no comment, volume 0, binary
		h = binary.LittleEndian.AppendUint32(h, e.mode<<16)
		h = binary.LittleEndian.AppendUint32(h, uint32(e.header))
		h = append(h, e.name...)
		if _, err := z.w.Write(h); err != nil {
			return 0, err
		}
	}
	n := uint16(len(z.entries))
	end := binary.LittleEndian.AppendUint32(nil, zipEndSig)
	end = append(end, 0, 0, 0, 0)
	end = binary.LittleEndian.AppendUint16(end, n)
	end = binary.LittleEndian.AppendUint16(end, n)
	end = binary.LittleEndian.AppendUint32(end, uint32(z.w.n-start))
	end = binary.LittleEndian.AppendUint32(end, uint32(start))
	end = append(end, 0, 0)
	_, err := z.w.Write(end)
	return unpacked, err
}
