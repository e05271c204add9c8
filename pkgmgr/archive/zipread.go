package archive

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"io"
	"slices"
)

// Sizes and signatures of APPNOTE.TXT 6.3.
const (
	zipLocalSig     = 0x04034b50
	zipCentralSig   = 0x02014b50
	zipEndSig       = 0x06054b50
	zip64EndSig     = 0x06064b50
	zip64LocatorSig = 0x07064b50
	zipDataSig      = 0x08074b50

	zipEndMagic = "PK\x05\x06" // zipEndSig as it stands in a file

	zipLocalLen     = 30
	zipCentralLen   = 46
	zipEndLen       = 22
	zip64EndLen     = 56
	zip64LocatorLen = 20

	zipStore   = 0
	zipDeflate = 8

	zipFlagEncrypted  = 1 << 0
	zipFlagDescriptor = 1 << 3
	zipFlagPatch      = 1 << 5
	zipFlagStrong     = 1 << 6
	zipFlagUTF8       = 1 << 11
	zipFlagMasked     = 1 << 13
)

// A zipEntry is one entry of the central directory whose local header agrees.
type zipEntry struct {
	name    string
	dir     bool
	modes   bool // the archive says what the file's mode is
	mode    uint32
	flags   uint16
	method  uint16
	crc     uint32
	packed  int64 // bytes in the archive
	size    int64 // of the contents
	header  int64 // offset of the local header
	data    int64 // offset of the packed bytes
	version uint16
}

// readZip returns the entries of a zip file in the order of their data, or the
// refusal of a file that two readers could read differently: the local headers
// repeat the central directory, and headers, data and directory cover the file
// from its first byte to its last without a gap or an overlap.
func readZip(src io.ReaderAt, size int64, l Limits) ([]zipEntry, error) {
	end, err := readZipEnd(src, size)
	if err != nil {
		return nil, err
	}
	// The root and a wrapping directory may be listed and do not count.
	if end.entries > uint64(l.Entries)+2 {
		return nil, refuse("", RuleEntries, "the zip lists %d entries, at most %d are allowed", end.entries, l.Entries)
	}
	entries, err := readZipDirectory(src, end, l)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b zipEntry) int { return cmp.Compare(a.header, b.header) })
	first := end.directory
	if n := len(entries); n > 0 {
		first = entries[0].header
		if last := entries[n-1]; last.header > end.directory {
			return nil, refuse(last.name, RuleUnlisted, "its data are beyond the central directory")
		}
	}
	if first != 0 {
		return nil, refuse("", RuleUnlisted, "%d bytes precede the first entry", first)
	}
	for i := range entries {
		next := end.directory
		if i+1 < len(entries) {
			next = entries[i+1].header
		}
		if err := entries[i].checkLocal(src, next); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

// A zipEnd is what the records at a zip file's end say.
type zipEnd struct {
	entries   uint64
	directory int64 // offset of the central directory
	length    int64 // of it
}

func readZipEnd(src io.ReaderAt, size int64) (zipEnd, error) {
	tail := make([]byte, min(size, zipEndLen+0xffff))
	if _, err := src.ReadAt(tail, size-int64(len(tail))); err != nil && err != io.EOF {
		return zipEnd{}, err
	}
	at, err := findZipEnd(tail)
	if err != nil {
		return zipEnd{}, err
	}
	b := tail[at:]
	u16 := func(i int) uint64 { return uint64(binary.LittleEndian.Uint16(b[i:])) }
	u32 := func(i int) uint64 { return uint64(binary.LittleEndian.Uint32(b[i:])) }
	disk, start, here, entries := u16(4), u16(6), u16(8), u16(10)
	length, offset := u32(12), u32(16)
	endAt := size - int64(len(tail)) + int64(at)

	if endAt >= zip64LocatorLen {
		loc := make([]byte, zip64LocatorLen)
		if _, err := src.ReadAt(loc, endAt-zip64LocatorLen); err != nil {
			return zipEnd{}, err
		}
		if binary.LittleEndian.Uint32(loc) == zip64LocatorSig {
			at := endAt - zip64LocatorLen - zip64EndLen
			if at < 0 || binary.LittleEndian.Uint64(loc[8:]) != uint64(at) ||
				binary.LittleEndian.Uint32(loc[4:]) != 0 || binary.LittleEndian.Uint32(loc[16:]) != 1 {
				return zipEnd{}, refuse("", RuleDisagree, "the zip64 records are not where they say")
			}
			b = make([]byte, zip64EndLen)
			if _, err := src.ReadAt(b, at); err != nil {
				return zipEnd{}, err
			}
			u64 := func(i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }
			same := func(short, long, most uint64) bool { return short == long || short == most }
			if u32(0) != zip64EndSig || u64(4) != zip64EndLen-12 || u32(16) != 0 || u32(20) != 0 || u64(24) != u64(32) ||
				!same(disk, 0, 0xffff) || !same(start, 0, 0xffff) || !same(here, u64(24), 0xffff) ||
				!same(entries, u64(32), 0xffff) || !same(length, u64(40), 0xffffffff) || !same(offset, u64(48), 0xffffffff) {
				return zipEnd{}, refuse("", RuleDisagree, "the two ends of the central directory say different things")
			}
			disk, start, here, entries, length, offset = 0, 0, u64(24), u64(32), u64(40), u64(48)
			endAt = at
		}
	}
	switch {
	case disk != 0 || start != 0 || here != entries:
		return zipEnd{}, refuse("", RuleUnsupported, "the zip is one of several volumes")
	case offset > uint64(endAt) || length > uint64(endAt) || offset+length != uint64(endAt):
		return zipEnd{}, refuse("", RuleUnlisted, "the central directory does not end where its end begins: data precede the zip or hide in it")
	}
	return zipEnd{entries: entries, directory: int64(offset), length: int64(length)}, nil
}

// findZipEnd returns the offset of the end record in a file's tail. It is the
// last one, its comment reaches exactly to the file's end, and no other does.
func findZipEnd(tail []byte) (int, error) {
	sig := []byte(zipEndMagic)
	reach := func(at int) int {
		if at+zipEndLen > len(tail) {
			return len(tail) + 1
		}
		return at + zipEndLen + int(binary.LittleEndian.Uint16(tail[at+20:]))
	}
	last := bytes.LastIndex(tail, sig)
	switch {
	case last < 0:
		return 0, refuse("", RuleTruncated, "the zip has no end, or more than a comment follows it")
	case reach(last) > len(tail):
		return 0, refuse("", RuleTruncated, "the zip's end is cut off")
	case reach(last) < len(tail):
		return 0, refuse("", RuleTrailing, "data follow the end of the zip")
	}
	for at := bytes.LastIndex(tail[:last], sig); at >= 0; at = bytes.LastIndex(tail[:at], sig) {
		if reach(at) == len(tail) {
			return 0, refuse("", RuleDisagree, "the zip has two ends")
		}
	}
	return last, nil
}

func readZipDirectory(src io.ReaderAt, end zipEnd, l Limits) ([]zipEntry, error) {
	in := bufio.NewReaderSize(io.NewSectionReader(src, end.directory, end.length), 64<<10)
	entries := make([]zipEntry, 0, end.entries)
	var h [zipCentralLen]byte
	for range end.entries {
		if _, err := io.ReadFull(in, h[:]); err != nil {
			return nil, zipShort(err)
		}
		if binary.LittleEndian.Uint32(h[:]) != zipCentralSig {
			return nil, refuse("", RuleCorrupt, "the central directory holds something else after entry %d", len(entries))
		}
		u16 := func(i int) uint16 { return binary.LittleEndian.Uint16(h[i:]) }
		u32 := func(i int) uint32 { return binary.LittleEndian.Uint32(h[i:]) }
		if most := 2*l.PathBytes + 4; int(u16(28)) > most {
			return nil, refuse("", RulePathLength, "the name of entry %d has %d bytes, at most %d are allowed", len(entries), u16(28), l.PathBytes)
		}
		text := make([]byte, int(u16(28))+int(u16(30))+int(u16(32)))
		if _, err := io.ReadFull(in, text); err != nil {
			return nil, zipShort(err)
		}
		e := zipEntry{
			name: string(text[:u16(28)]), version: u16(4), flags: u16(8), method: u16(10), crc: u32(16),
			packed: int64(u32(20)), size: int64(u32(24)), header: int64(u32(42)),
		}
		extra := text[u16(28) : u16(28)+u16(30)]
		if u16(34) != 0 && u16(34) != 0xffff {
			return nil, refuse(e.name, RuleUnsupported, "the entry is on another volume")
		}
		if err := e.checkCentral(extra, u32(38)); err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	if _, err := in.ReadByte(); err != io.EOF {
		return nil, refuse("", RuleUnlisted, "the central directory is longer than its entries")
	}
	return entries, nil
}

func zipShort(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return refuse("", RuleCorrupt, "the central directory is shorter than its entries")
	}
	return err
}
