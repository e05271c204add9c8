package archive

import (
	"bytes"
	"strconv"
	"strings"
)

// A tarHeader is what one header block says about an entry's contents. Owners
// and times are not read.
type tarHeader struct {
	name string
	flag byte
	size int64
	mode int64
	link bool // has the target of a link
}

// parseTarHeader reads a block of the ustar, pax or GNU form.
func parseTarHeader(b *[tarBlock]byte) (tarHeader, error) {
	name, ok := cString(b[0:100])
	h := tarHeader{name: name, flag: b[156]}
	sum, good := tarNumber(b[148:156])
	if !good || sum != tarChecksum(b) {
		return h, refuse("", RuleCorrupt, "a tar header's checksum is wrong")
	}
	if !ok {
		return h, refuse(name, RuleControl, "the name has a NUL inside")
	}
	switch string(b[257:265]) {
	case "ustar\x0000":
		prefix, ok := cString(b[345:500])
		if !ok {
			return h, refuse(name, RuleControl, "the name's prefix has a NUL inside")
		}
		if prefix != "" {
			h.name = prefix + "/" + name
		}
	case "ustar  \x00":
		// GNU has times and a list of holes in place of a prefix, in a few kinds of
		// archives; other readers put whatever stands there before the name.
		if h.flag != 'S' && !isZero(b[345:500]) {
			return h, refuse(name, RuleDisagree, "a GNU header has something in the place of the name's prefix, which some readers add to the name")
		}
	default:
		return h, refuse(name, RuleUnsupported, "the header is neither ustar, pax nor GNU")
	}
	// One old form ends the prefix earlier and marks that here.
	if !isZero(b[500:]) {
		return h, refuse(h.name, RuleUnsupported, "the header does not end like one of ustar, pax or GNU")
	}
	if h.size, good = tarNumber(b[124:136]); !good {
		return h, refuse(h.name, RuleCorrupt, "the header's size is not a number that can be")
	}
	if h.mode, good = tarNumber(b[100:108]); !good {
		return h, refuse(h.name, RuleCorrupt, "the header's mode is not a number that can be")
	}
	h.link = b[157] != 0
	return h, nil
}

// tarChecksum adds up a header with its checksum field read as spaces.
func tarChecksum(b *[tarBlock]byte) int64 {
	var sum int64
	for _, c := range b {
		sum += int64(c)
	}
	for _, c := range b[148:156] {
		sum += ' ' - int64(c)
	}
	return sum
}

// tarNumber reads a field of octal digits between spaces and NULs, or GNU's
// big-endian binary form. Negative numbers and those beyond 2^62 are none, and
// neither is an empty field: some readers take it for zero, others refuse it.
func tarNumber(b []byte) (int64, bool) {
	var n int64
	if b[0]&0x80 != 0 {
		for i, c := range b {
			if i == 0 {
				c &= 0x7f
			}
			if n >= 1<<54 {
				return 0, false
			}
			n = n<<8 | int64(c)
		}
		return n, true
	}
	// Spaces before, a NUL or spaces after: anything else is read differently by
	// different readers.
	digits := bytes.TrimRight(bytes.TrimLeft(b, " "), " \x00")
	if len(digits) == 0 {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '7' || n >= 1<<59 {
			return 0, false
		}
		n = n<<3 | int64(c-'0')
	}
	return n, true
}

// paxRecords is what the records of one pax header say about an entry's
// contents.
type paxRecords struct {
	path      string
	hasPath   bool
	size      int64
	hasSize   bool
	link      bool
	sparse    string // the keyword that makes it sparse
	privilege string // the keyword that sets file capabilities
	foreign   string // the first keyword that is not known to be harmless

	beyondComment string // the first keyword other than "comment"
}

// parsePax reads records of the form "LENGTH KEYWORD=VALUE\n", in which each
// keyword may occur once. The error is a refusal.
func parsePax(data []byte) (*paxRecords, error) {
	p := &paxRecords{}
	seen := map[string]bool{}
	for len(data) > 0 {
		space := bytes.IndexByte(data[:min(len(data), 10)], ' ')
		if space < 1 || data[0] < '1' || data[0] > '9' {
			return p, refuse(p.path, RuleCorrupt, "a pax record has no length")
		}
		length, err := strconv.Atoi(string(data[:space]))
		if err != nil || length <= space+1 || length > len(data) || data[length-1] != '\n' {
			return p, refuse(p.path, RuleCorrupt, "a pax record's length is wrong")
		}
		key, value, ok := strings.Cut(string(data[space+1:length-1]), "=")
		data = data[length:]
		switch {
		case !ok || key == "":
			return p, refuse(p.path, RuleCorrupt, "a pax record has no keyword")
		case seen[key]:
			return p, refuse(p.path, RuleDisagree, "the pax record \"%s\" occurs twice", abbreviate(key))
		}
		seen[key] = true
		if key != "comment" && p.beyondComment == "" {
			p.beyondComment = abbreviate(key)
		}
		if err := p.set(key, value); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (p *paxRecords) set(key, value string) error {
	switch {
	case key == "path":
		if value == "" {
			return refuse("", RuleForm, "a pax header takes an entry's name away")
		}
		p.path, p.hasPath = value, true
	case key == "size":
		n, err := strconv.ParseUint(value, 10, 62)
		if err != nil {
			return refuse(p.path, RuleCorrupt, "the pax size \"%s\" is not a number that can be", abbreviate(value))
		}
		p.size, p.hasSize = int64(n), true
	case key == "linkpath":
		p.link = true
	case key == "hdrcharset" && value != "ISO-IR 10646 2000 UTF-8":
		return refuse(p.path, RuleEncoding, "a pax header's text is in the character set \"%s\"", abbreviate(value))
	case strings.HasPrefix(key, "GNU.sparse."), key == "SCHILY.realsize", key == "SUN.holesdata":
		p.sparse = abbreviate(key)
	case strings.HasSuffix(key, ".xattr.security.capability"):
		p.privilege = abbreviate(key)
	case !harmless(key) && p.foreign == "":
		p.foreign = abbreviate(key)
	}
	return nil
}

// harmless reports whether a pax record says nothing about an entry's name,
// kind, size or data, to any reader. Of one that is not known here nobody can
// tell: vendors have records for the parts of a file, its holes and its type.
func harmless(key string) bool {
	switch key {
	case "atime", "ctime", "mtime", "uid", "gid", "uname", "gname", "comment", "hdrcharset",
		"SCHILY.dev", "SCHILY.ino", "SCHILY.nlink", "SCHILY.devmajor", "SCHILY.devminor", "SCHILY.fflags",
		"LIBARCHIVE.creationtime", "RHT.security.selinux", "SUN.devmajor", "SUN.devminor",
		"MSWINDOWS.fileattr", "MSWINDOWS.rawsd":
		return true
	}
	for _, prefix := range [...]string{"SCHILY.xattr.", "SCHILY.acl.", "LIBARCHIVE.xattr."} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}
