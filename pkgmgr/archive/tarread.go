package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

const tarBlock = 512

// A tarReader reads the ustar, pax and GNU forms of a tar, strictly: where the
// forms leave two readers room to differ, it refuses. The differences to what
// most readers do are deliberate and listed in docs/packages.md.
type tarReader struct {
	in       io.Reader
	limits   Limits
	at       int64 // offset in the tar
	left     int64 // of the current entry's contents
	pad      int64 // after them
	overhead int64 // bytes of extended headers and of padding at the end
	block    [tarBlock]byte
}

// A tarEntry is a file or a directory.
type tarEntry struct {
	name string
	dir  bool
	size int64
	mode int64 // permission bits
}

// extended is what the headers before an entry's own say about it.
type extended struct {
	pax      *paxRecords
	longName string
	hasName  bool // by a GNU long name
	hasLink  bool // by a GNU long link
}

// next returns the next entry, or io.EOF once the tar has ended as it should.
// The contents of the entry before must have been read.
func (t *tarReader) next() (tarEntry, error) {
	var ext extended
	for {
		if err := t.padding(); err != nil {
			return tarEntry{}, err
		}
		start := t.at
		if err := t.readBlock(); err != nil {
			return tarEntry{}, err
		}
		if isZero(t.block[:]) {
			if ext != (extended{}) {
				return tarEntry{}, refuse("", RuleTruncated, "an extended header at byte %d precedes no entry", start)
			}
			return tarEntry{}, t.end()
		}
		e, more, err := t.header(&ext)
		var r *Refusal
		switch {
		case errors.As(err, &r) && r.Entry == "":
			r.Detail += fmt.Sprintf(" (header at byte %d)", start)
			return e, r
		case err != nil || !more:
			return e, err
		}
	}
}

// header takes in the header in t.block: more says that it belongs to one that
// follows.
func (t *tarReader) header(ext *extended) (e tarEntry, more bool, err error) {
	h, err := parseTarHeader(&t.block)
	if err != nil {
		return e, false, err
	}
	switch h.flag {
	case 'x', 'g', 'L', 'K':
		data, err := t.extension(h)
		if err != nil {
			return e, false, err
		}
		return e, true, ext.add(h.flag, data)
	}
	e, err = t.entry(h, ext)
	return e, false, err
}

// add takes in the contents of one extended header.
func (x *extended) add(flag byte, data []byte) error {
	switch flag {
	case 'g':
		// The one global header that says nothing of the files: the comment in
		// which "git archive" writes the commit.
		p, err := parsePax(data)
		switch {
		case err != nil:
			return err
		case *x != (extended{}):
			return refuse(p.path, RuleDisagree, "a global header stands between an entry and its own")
		case p.beyondComment != "":
			return refuse(p.path, RuleGlobal, "a global header sets \"%s\" for all entries", p.beyondComment)
		}
	case 'x':
		p, err := parsePax(data)
		switch {
		case err != nil:
			return err
		case x.pax != nil:
			return refuse(p.path, RuleDisagree, "two pax headers speak of one entry")
		}
		x.pax = p
	default:
		text, ok := cString(data)
		switch {
		case !ok || text == "":
			return refuse(text, RuleControl, "a GNU long name is empty or has a NUL inside")
		case flag == 'K' && x.hasLink, flag == 'L' && x.hasName:
			return refuse(text, RuleDisagree, "two GNU long names speak of one entry")
		case flag == 'K':
			x.hasLink = true
		default:
			x.longName, x.hasName = text, true
		}
	}
	return nil
}

// extension reads the contents of an extended header, a bounded number of bytes.
func (t *tarReader) extension(h tarHeader) ([]byte, error) {
	if h.size > t.limits.Header {
		return nil, refuse(h.name, RuleHeaderSize, "an extended header has %d bytes, at most %d are allowed", h.size, t.limits.Header)
	}
	// The block itself counts, or empty ones could go on for ever.
	if err := t.spend(tarBlock + h.size); err != nil {
		return nil, err
	}
	data := make([]byte, h.size)
	t.left, t.pad = h.size, -h.size&(tarBlock-1)
	return data, t.read(data)
}

func (t *tarReader) spend(n int64) error {
	t.overhead += n
	if t.overhead > t.limits.Overhead {
		return refuse("", RuleOverhead, "extended headers and padding have more than %d bytes", t.limits.Overhead)
	}
	return nil
}

// entry makes a file or directory of a header and those before it.
func (t *tarReader) entry(h tarHeader, ext *extended) (tarEntry, error) {
	e := tarEntry{name: h.name, size: h.size, mode: h.mode}
	if ext.hasName {
		e.name = ext.longName
	}
	if p := ext.pax; p != nil {
		if p.hasPath {
			if ext.hasName {
				return e, refuse(p.path, RuleDisagree, "a pax header and a GNU long name speak of one entry")
			}
			e.name = p.path
		}
		if p.sparse != "" {
			return e, refuse(e.name, RuleSparse, "the pax record \"%s\" makes it a file with holes", p.sparse)
		}
		if p.foreign != "" {
			return e, refuse(e.name, RuleUnsupported, "the pax record \"%s\" is not known, and may change where its data lie", p.foreign)
		}
		if p.privilege != "" {
			return e, refuse(e.name, RuleMode, "the pax record \"%s\" gives it privileges", p.privilege)
		}
		if p.hasSize && p.size != h.size {
			return e, refuse(e.name, RuleDisagree, "the pax header says %d bytes, the entry's own header %d", p.size, h.size)
		}
	}
	switch h.flag {
	case '0', 0:
	case '5':
		e.dir = true
	case '1':
		return e, refuse(e.name, RuleLink, "hard links are not unpacked")
	case '2':
		return e, refuse(e.name, RuleLink, "symbolic links are not unpacked")
	case '3', '4':
		return e, refuse(e.name, RuleSpecial, "device files are not unpacked")
	case '6':
		return e, refuse(e.name, RuleSpecial, "named pipes are not unpacked")
	case '7':
		return e, refuse(e.name, RuleSpecial, "contiguous files are not unpacked")
	case 'S':
		return e, refuse(e.name, RuleSparse, "files with holes are not unpacked")
	default:
		return e, refuse(e.name, RuleUnsupported, "the entry has the unknown type %q", h.flag)
	}
	switch {
	case ext.hasLink, ext.pax != nil && ext.pax.link, h.link:
		return e, refuse(e.name, RuleDisagree, "it has the target of a link and is none")
	case e.dir && e.size != 0:
		return e, refuse(e.name, RuleDisagree, "it is a directory with %d bytes of contents", e.size)
	case !kindAgrees(e.mode, e.dir):
		return e, refuse(e.name, RuleDisagree, "its mode %#o is that of another kind of entry than its type", e.mode)
	case e.mode&0o7000 != 0:
		return e, refuse(e.name, RuleMode, "it has a set-user-id, set-group-id or sticky bit (%#o)", e.mode&0o7777)
	case !namesAgree(h.name, e.name):
		return e, refuse(e.name, RuleDisagree, "its own header calls it \"%s\"", abbreviate(h.name))
	}
	t.left, t.pad = e.size, -e.size&(tarBlock-1)
	return e, nil
}

// kindAgrees reports whether what a header's mode says above the permissions, which is
// nothing in most archives, is the kind of the entry.
func kindAgrees(mode int64, dir bool) bool {
	switch mode &^ 0o7777 {
	case 0:
		return true
	case 0o100000:
		return !dir
	case 0o040000:
		return dir
	}
	return false
}

// read fills b from the current entry's contents.
func (t *tarReader) read(b []byte) error {
	n, err := io.ReadFull(t.in, b)
	t.at += int64(n)
	t.left -= int64(n)
	return truncated(err)
}

// padding reads what fills the last block of the contents before.
func (t *tarReader) padding() error {
	if t.left != 0 {
		panic("archive: contents of a tar entry were not read")
	}
	b := t.block[:t.pad]
	t.pad = 0
	n, err := io.ReadFull(t.in, b)
	t.at += int64(n)
	if err != nil {
		return truncated(err)
	}
	if !isZero(b) {
		return refuse("", RuleUnlisted, "the padding before byte %d is not zero", t.at)
	}
	return nil
}

func (t *tarReader) readBlock() error {
	n, err := io.ReadFull(t.in, t.block[:])
	t.at += int64(n)
	return truncated(err)
}

// end checks the end of the tar after its first zero block: another one, then
// zeros only, until the file ends.
func (t *tarReader) end() error {
	if err := t.readBlock(); err != nil {
		return err
	}
	for {
		if !isZero(t.block[:]) {
			return refuse("", RuleTrailing, "data follow the end of the tar at byte %d", t.at)
		}
		n, err := io.ReadFull(t.in, t.block[:])
		t.at += int64(n)
		if err := t.spend(int64(n)); err != nil {
			return err
		}
		switch {
		case err == io.EOF:
			return io.EOF
		case err == io.ErrUnexpectedEOF && isZero(t.block[:n]):
			return io.EOF
		case err == io.ErrUnexpectedEOF:
			return refuse("", RuleTrailing, "data follow the end of the tar at byte %d", t.at)
		case err != nil:
			return err
		}
	}
}

// truncated makes a refusal of an end where none may be.
func truncated(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return refuse("", RuleTruncated, "the tar ends without its end mark")
	}
	return err
}

// cString returns the text of a field that ends with its first NUL, or fills
// the field; ok is false if anything but NUL follows.
func cString(b []byte) (text string, ok bool) {
	i := bytes.IndexByte(b, 0)
	if i < 0 {
		return string(b), true
	}
	return string(b[:i]), isZero(b[i:])
}
