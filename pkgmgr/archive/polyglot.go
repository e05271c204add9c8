package archive

import (
	"bytes"
	"encoding/binary"
	"io"
)

// checkOneFormat refuses a file that its first bytes call c and that a reader
// which looks elsewhere would read as something else: a tar is recognised by its
// first block, whatever that begins with, and a zip by its end, whatever comes
// before it.
//
// A zip that lies in a tar as one of its files is none of that: its offsets
// count from its own first byte, and it ends before the tar does.
func checkOneFormat(src io.ReaderAt, size int64, c container) error {
	if c != containerTar {
		var head [tarBlock]byte
		if n, err := src.ReadAt(head[:], 0); err != nil && err != io.EOF {
			return err
		} else if n == tarBlock && startsTar(&head) {
			return refuse("", RuleFormat, "the file is two at once: its first block is a tar's header as well")
		}
	}
	if c == containerZip {
		return nil
	}
	return checkNoZipEnd(src, size)
}

// startsTar reports whether b has the checksum of a tar header, of any age: most
// readers ask for no more. Some add up the bytes as signed ones.
func startsTar(b *[tarBlock]byte) bool {
	sum, ok := tarNumber(b[148:156])
	if !ok {
		return false
	}
	unsigned := tarChecksum(b)
	signed := unsigned
	for i, c := range b {
		if c >= 0x80 && (i < 148 || i >= 156) {
			signed -= 256
		}
	}
	return sum == unsigned || sum == signed
}

// checkNoZipEnd refuses a file that is not taken for a zip and ends like one.
func checkNoZipEnd(src io.ReaderAt, size int64) error {
	tail := make([]byte, min(size, zipEndLen+0xffff))
	start := size - int64(len(tail))
	if _, err := src.ReadAt(tail, start); err != nil && err != io.EOF {
		return err
	}
	for at := bytes.LastIndex(tail, []byte(zipEndMagic)); at >= 0; at = bytes.LastIndex(tail[:at], []byte(zipEndMagic)) {
		b := tail[at:]
		if len(b) < zipEndLen {
			continue
		}
		ends := zipEndLen+int(binary.LittleEndian.Uint16(b[20:])) == len(b)
		whole, err := endsThisFile(src, start+int64(at), b)
		if err != nil {
			return err
		}
		if ends || whole {
			return refuse("", RuleFormat, "the file is two at once: a zip ends at byte %d", start+int64(at))
		}
	}
	return nil
}

// endsThisFile reports whether the zip end record b at the offset at tells of a
// central directory that lies directly before it, counted from the file's first
// byte.
func endsThisFile(src io.ReaderAt, at int64, b []byte) (bool, error) {
	length, offset := uint64(binary.LittleEndian.Uint32(b[12:])), uint64(binary.LittleEndian.Uint32(b[16:]))
	if offset != 0xffffffff && length != 0xffffffff {
		return offset+length == uint64(at), nil
	}
	if at < zip64LocatorLen {
		return false, nil
	}
	var locator [zip64LocatorLen]byte
	if _, err := src.ReadAt(locator[:], at-zip64LocatorLen); err != nil {
		return false, err
	}
	return binary.LittleEndian.Uint32(locator[:]) == zip64LocatorSig &&
		binary.LittleEndian.Uint64(locator[8:]) == uint64(at-zip64LocatorLen-zip64EndLen), nil
}
