package archive

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
)

// checkCentral judges an entry by its central header and completes it.
func (e *zipEntry) checkCentral(extra []byte, attributes uint32) error {
	x, err := parseZipExtra(e.name, extra, []*int64{&e.size, &e.packed, &e.header})
	if err != nil {
		return err
	}
	switch {
	case e.flags&(zipFlagEncrypted|zipFlagStrong|zipFlagMasked) != 0 || x.encrypted || e.method == 99:
		return refuse(e.name, RuleEncrypted, "it is encrypted")
	case e.flags&zipFlagPatch != 0:
		return refuse(e.name, RuleUnsupported, "it holds a patch")
	case e.method != zipStore && e.method != zipDeflate:
		return refuse(e.name, RuleUnsupported, "it is compressed by method %d; only stored and deflated entries are read", e.method)
	case e.method == zipStore && e.packed != e.size:
		return refuse(e.name, RuleDisagree, "it is stored and has two sizes, %d and %d", e.packed, e.size)
	case !isASCII(e.name) && e.flags&zipFlagUTF8 == 0 && !x.utf8Name && !e.unixHost():
		// Unix's zip programs declare nothing and mean UTF-8; others mean the
		// code page of a machine that is not known here.
		return refuse(e.name, RuleEncoding, "its name is not declared to be UTF-8")
	}
	e.dir = strings.HasSuffix(e.name, "/")
	return e.checkAttributes(attributes)
}

const (
	zipHostUnix  = 3
	zipHostMacOS = 19

	unixTypeMask = 0o170000
	unixRegular  = 0o100000
	unixDir      = 0o040000
	unixLink     = 0o120000

	dosVolume = 0x08
	dosDir    = 0x10
)

// checkAttributes judges the kind of file that the external attributes tell:
// Unix's in the upper half, whoever wrote them, and DOS's in the lower.
func (e *zipEntry) checkAttributes(attributes uint32) error {
	mode := attributes >> 16
	switch kind := mode & unixTypeMask; {
	case kind == unixLink:
		return refuse(e.name, RuleLink, "symbolic links are not unpacked")
	case kind != 0 && kind != unixRegular && kind != unixDir, attributes&dosVolume != 0:
		return refuse(e.name, RuleSpecial, "special files are not unpacked")
	case mode&0o7000 != 0:
		return refuse(e.name, RuleMode, "it has a set-user-id, set-group-id or sticky bit (%#o)", mode&0o7777)
	case kind != 0 && (kind == unixDir) != e.dir, attributes&dosDir != 0 && !e.dir:
		return refuse(e.name, RuleDisagree, "its name and its attributes differ over its being a directory")
	case e.dir && e.size != 0:
		return refuse(e.name, RuleDisagree, "it is a directory with %d bytes of contents", e.size)
	}
	e.modes = mode != 0 && e.unixHost()
	if e.modes {
		e.mode = mode
	}
	return nil
}

func (e *zipEntry) unixHost() bool {
	host := e.version >> 8
	return host == zipHostUnix || host == zipHostMacOS
}

// checkLocal compares the local header with the central one, finds the data,
// and checks that with their descriptor they end at next.
func (e *zipEntry) checkLocal(src io.ReaderAt, next int64) error {
	var h [zipLocalLen]byte
	if next-e.header < zipLocalLen {
		return refuse(e.name, RuleUnlisted, "its data overlap what follows them")
	}
	if _, err := src.ReadAt(h[:], e.header); err != nil {
		return err
	}
	u16 := func(i int) uint16 { return binary.LittleEndian.Uint16(h[i:]) }
	u32 := func(i int) uint32 { return binary.LittleEndian.Uint32(h[i:]) }
	if u32(0) != zipLocalSig {
		return refuse(e.name, RuleCorrupt, "there is no local header where the central directory says")
	}
	text := make([]byte, int(u16(26))+int(u16(28)))
	e.data = e.header + zipLocalLen + int64(len(text))
	if e.data > next {
		return refuse(e.name, RuleUnlisted, "its data overlap what follows them")
	}
	if _, err := src.ReadAt(text, e.header+zipLocalLen); err != nil {
		return err
	}
	name, extra := string(text[:u16(26)]), text[u16(26):]
	if name != e.name {
		return refuse(e.name, RuleDisagree, "its local header calls it \"%s\"", abbreviate(name))
	}
	crc, packed, size := u32(14), int64(u32(18)), int64(u32(22))
	x, err := parseZipExtra(e.name, extra, []*int64{&size, &packed})
	switch {
	case err != nil:
		return err
	case x.encrypted:
		return refuse(e.name, RuleEncrypted, "it is encrypted")
	case u16(6) != e.flags || u16(8) != e.method:
		return refuse(e.name, RuleDisagree, "its local header has other flags or another method")
	}
	later := e.flags&zipFlagDescriptor != 0
	same := func(local, central int64) bool { return local == central || later && local == 0 }
	if !same(int64(crc), int64(e.crc)) || !same(packed, e.packed) || !same(size, e.size) {
		return refuse(e.name, RuleDisagree, "its local header has another size or checksum")
	}
	end := next - e.data
	switch {
	case e.packed > end:
		return refuse(e.name, RuleUnlisted, "its data overlap what follows them")
	case later:
		return e.checkDescriptor(src, e.data+e.packed, end-e.packed)
	case e.packed < end:
		return refuse(e.name, RuleUnlisted, "%d bytes after its data belong to no entry", end-e.packed)
	}
	return nil
}

// checkDescriptor compares the data descriptor, which has one of four lengths
// and fills what is left until the next header.
func (e *zipEntry) checkDescriptor(src io.ReaderAt, at, length int64) error {
	if length != 12 && length != 16 && length != 20 && length != 24 {
		return refuse(e.name, RuleUnlisted, "%d bytes after its data are no data descriptor", length)
	}
	d := make([]byte, length)
	if _, err := src.ReadAt(d, at); err != nil {
		return err
	}
	var want []byte
	if length == 16 || length == 24 {
		want = binary.LittleEndian.AppendUint32(want, zipDataSig)
	}
	want = binary.LittleEndian.AppendUint32(want, e.crc)
	if length >= 20 {
		want = binary.LittleEndian.AppendUint64(want, uint64(e.packed))
		want = binary.LittleEndian.AppendUint64(want, uint64(e.size))
	} else {
		want = binary.LittleEndian.AppendUint32(want, uint32(e.packed))
		want = binary.LittleEndian.AppendUint32(want, uint32(e.size))
	}
	if !bytes.Equal(d, want) {
		return refuse(e.name, RuleDisagree, "its data descriptor differs from the central directory")
	}
	return nil
}

// zipExtra is what the extra fields of a header say beyond sizes.
type zipExtra struct {
	encrypted bool
	utf8Name  bool // the name is repeated as UTF-8
}

// parseZipExtra reads extra fields. Each of sizes whose 32-bit value is all
// ones is replaced by the zip64 field's, in this order.
func parseZipExtra(name string, extra []byte, sizes []*int64) (zipExtra, error) {
	var x zipExtra
	var wide []byte
	seen := map[uint16]bool{}
	for len(extra) > 0 {
		if len(extra) < 4 || len(extra)-4 < int(binary.LittleEndian.Uint16(extra[2:])) {
			return x, refuse(name, RuleCorrupt, "its extra fields are cut off")
		}
		id := binary.LittleEndian.Uint16(extra)
		field := extra[4 : 4+int(binary.LittleEndian.Uint16(extra[2:]))]
		extra = extra[4+len(field):]
		if seen[id] {
			return x, refuse(name, RuleDisagree, "the extra field %#04x occurs twice", id)
		}
		seen[id] = true
		switch id {
		case 0x0001:
			wide = field
		case 0x0017, 0x9901:
			x.encrypted = true
		case 0x7075: // version, CRC of the name, name in UTF-8
			if len(field) < 5 || string(field[5:]) != name {
				return x, refuse(name, RuleDisagree, "an extra field gives it another name")
			}
			x.utf8Name = true
		case 0x756e:
			return x, refuse(name, RuleUnsupported, "an extra field gives it another mode")
		}
	}
	for _, p := range sizes {
		if *p != 0xffffffff {
			continue
		}
		if len(wide) < 8 {
			return x, refuse(name, RuleDisagree, "its zip64 field is missing or too short")
		}
		n := binary.LittleEndian.Uint64(wide)
		if n > 1<<62 {
			return x, refuse(name, RuleCorrupt, "its zip64 field is not a size that can be")
		}
		*p, wide = int64(n), wide[8:]
	}
	if len(wide) > 0 && !isZero(wide) {
		return x, refuse(name, RuleDisagree, "its zip64 field says more than the header asks for")
	}
	return x, nil
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
