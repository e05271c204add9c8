package archive

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A refused is an archive that must be refused.
type refused struct {
	name  string
	data  []byte
	rule  Rule
	entry string
}

// small bounds the cases about bounds.
var small = Limits{
	Archive: 1 << 20, Unpacked: 64 << 10, Entries: 8, PathBytes: 40, Depth: 4, Ratio: 20, RatioFree: 16 << 10,
	ZstdWindow: 1 << 20, Header: 4 << 10, Overhead: 12 << 10, IgnoreFile: 1 << 10,
}

const manifest = `{"schemaVersion":"switchyard.plugin-manifest/v1"}`

// good is the tar that most cases spoil.
func good() *tarball { return newTar().file("plugin.json", manifest) }

func refusedTars() []refused {
	named := func(rule Rule, name string) refused {
		return refused{fmt.Sprintf("%s %q", rule, name), good().file(name, "x").done(), rule, name}
	}
	cases := []refused{
		named(RuleAbsolute, "/etc/passwd"),
		named(RuleAbsolute, "C:/windows"),
		named(RuleReserved, "a:b"),
		named(RuleParent, "../outside"),
		named(RuleParent, "a/../../outside"),
		named(RuleParent, "a/.."),
		named(RuleForm, ""),
		named(RuleForm, "a//b"),
		named(RuleForm, "a/./b"),
		named(RuleForm, "././a"),
		named(RuleForm, ".//a"),
		named(RuleForm, "a/"),
		named(RuleForm, "."),
		named(RuleBackslash, `a\b`),
		named(RuleBackslash, `..\outside`),
		named(RuleControl, "a\nb"),
		named(RuleControl, "a\x7f"),
		named(RuleControl, "a\u0085b"),
		named(RuleEncoding, "a\xff"),
		named(RuleEncoding, "a\xed\xa0\x80"), // a surrogate
		named(RuleInvisible, "a\u202eb"),     // right-to-left override
		named(RuleInvisible, "a\u200bb"),     // zero-width space
		named(RuleInvisible, "a\u2066b"),
		named(RuleInvisible, "a\ufeffb"),
		named(RuleInvisible, "a\u00adb"), // soft hyphen
		named(RuleInvisible, "a\ufe0fb"), // variation selector
		named(RuleInvisible, "a\u3164b"), // Hangul filler, a letter that shows nothing
		named(RuleInvisible, "\u3164\u200b"),
		named(RuleInvisible, "\u2800"), // blank Braille pattern, which counts as printable
		named(RuleInvisible, "\u2800\u2800.txt"),
		named(RuleInvisible, "a\ufffcb"), // object replacement
		named(RuleInvisible, "a\u034fb"), // grapheme joiner
		named(RuleInvisible, "a\u17b4b"), // inherent vowel
		named(RuleInvisible, "a\u2028b"),
		named(RuleInvisible, "a\u00a0b"),
		named(RuleInvisible, "a\U000e0041b"), // tag
		named(RuleInvisible, "a\ufffeb"),     // noncharacter
		named(RuleInvisible, "a\ue000b"),     // private use
		named(RuleReserved, "AUX"),
		named(RuleReserved, "nul.txt"),
		named(RuleReserved, "nul .txt"),
		named(RuleReserved, "dir/com7.tar.gz"),
		named(RuleReserved, "LPT0"),
		named(RuleReserved, "conIN$"),
		named(RuleReserved, "com\u00b9"), // a superscript digit counts as one
		named(RuleReserved, "dir/a:b"),
		named(RuleReserved, "a?"),
		named(RuleReserved, "trailing."),
		named(RuleReserved, "trailing "),
		named(RuleReserved, "dir./a"),
		named(RuleReserved, "a\uff0fb"),       // full-width solidus
		named(RuleReserved, "\uff0e\uff0e/a"), // full-width full stops
		named(RuleBackslash, "a\uff3cb"),      // full-width backslash

		{"hard link", good().add('1', "b", "", link("plugin.json")).done(), RuleLink, "b"},
		{"hard link before its target", newTar().add('1', "b", "", link("a")).file("a", "x").done(), RuleLink, "b"},
		{"symbolic link", good().add('2', "b", "", link("/etc/passwd")).done(), RuleLink, "b"},
		{"symbolic link with a GNU long target", good().add('K', "././@LongLink", strings.Repeat("t", 200)+"\x00", gnu()).add('2', "b", "", gnu()).done(), RuleLink, "b"},
		{"character device", good().add('3', "b", "").done(), RuleSpecial, "b"},
		{"block device", good().add('4', "b", "").done(), RuleSpecial, "b"},
		{"pipe", good().add('6', "b", "").done(), RuleSpecial, "b"},
		{"contiguous file", good().add('7', "b", "").done(), RuleSpecial, "b"},
		{"GNU sparse file", good().add('S', "b", "", gnu()).done(), RuleSparse, "b"},
		{"pax sparse file", good().pax("GNU.sparse.major", "1", "GNU.sparse.name", "b").file("c", "x").done(), RuleSparse, "c"},
		{"Solaris sparse file", good().pax("SUN.holesdata", " 0 0 512").file("c", "x").done(), RuleSparse, "c"},
		{"star sparse file", good().pax("SCHILY.realsize", "1000").file("c", "x").done(), RuleSparse, "c"},
		{"part of a file", good().pax("GNU.volume.offset", "512").file("c", "x").done(), RuleUnsupported, "c"},
		{"file type in a pax record", good().pax("SCHILY.filetype", "sparse").file("c", "x").done(), RuleUnsupported, "c"},
		{"unknown pax record", good().pax("path", "d", "ACME.data", "1").file("c", "x").done(), RuleUnsupported, "d"},
		{"unknown pax record in another case", good().pax("Mtime", "1").file("c", "x").done(), RuleUnsupported, "c"},
		{"multi-volume", good().add('M', "b", "", gnu()).done(), RuleUnsupported, "b"},
		{"Solaris extended header", good().add('X', "b", "").done(), RuleUnsupported, "b"},
		{"set-user-id", good().file("b", "x", mode(0o4755)).done(), RuleMode, "b"},
		{"set-group-id", good().file("b", "x", mode(0o2755)).done(), RuleMode, "b"},
		{"sticky", good().file("b", "x", mode(0o1755)).done(), RuleMode, "b"},
		{"set-group-id directory", good().add('5', "b/", "", mode(0o2755)).done(), RuleMode, "b/"},
		{"symbolic link by mode", good().file("b", "/etc/passwd", mode(0o120777)).done(), RuleDisagree, "b"},
		{"symbolic link by mode, old type", good().add(0, "b", "x", mode(0o120777)).done(), RuleDisagree, "b"},
		{"directory by mode", good().file("b", "x", mode(0o040755)).done(), RuleDisagree, "b"},
		{"file by mode", good().add('5', "b/", "", mode(0o100644)).done(), RuleDisagree, "b/"},
		{"pipe by mode", good().file("b", "x", mode(0o010644)).done(), RuleDisagree, "b"},
		{"device by mode", good().file("b", "x", mode(0o060644)).done(), RuleDisagree, "b"},
		{"socket by mode", good().file("b", "x", mode(0o140644)).done(), RuleDisagree, "b"},
		{"unknown kind by mode", good().file("b", "x", mode(0o1000644)).done(), RuleDisagree, "b"},
		{"directory that is a link by mode", good().add('5', "b/", "", mode(0o120755)).done(), RuleDisagree, "b/"},
		{"file capabilities", good().pax("SCHILY.xattr.security.capability", "x").file("b", "x").done(), RuleMode, "b"},

		{"duplicate", good().file("b", "x").file("b", "x").done(), RuleDuplicate, "b"},
		{"duplicate by another spelling", good().file("b", "x").file("./b", "x").done(), RuleDuplicate, "./b"},
		{"duplicate directory", good().dir("b").dir("b/").done(), RuleDuplicate, "b/"},
		{"duplicate root", good().dir("./").dir(".").done(), RuleDuplicate, "."},
		{"case", good().file("README", "x").file("readme", "x").done(), RuleCollision, "readme"},
		{"case in a directory", good().file("Lib/a", "x").file("lib/b", "x").done(), RuleCollision, "lib/b"},
		{"case of a file and a directory", good().file("Lib", "x").file("lib/b", "x").done(), RuleCollision, "lib/b"},
		{"case of a directory and a file", good().file("lib/b", "x").file("LIB", "x").done(), RuleCollision, "LIB"},
		{"composed and decomposed", good().file("\u00e9", "x").file("e\u0301", "x").done(), RuleCollision, "e\u0301"},
		{"composed and decomposed directories", good().file("d/\u00e9/1", "x").file("d/e\u0301/2", "x").done(), RuleCollision, "d/e\u0301/2"},
		{"compatibility form", good().file("fi", "x").file("\ufb01", "x").done(), RuleCollision, "\ufb01"},
		{"sharp s", good().file("stra\u00dfe", "x").file("STRASSE", "x").done(), RuleCollision, "STRASSE"},
		{"Kelvin sign", good().file("k", "x").file("\u212a", "x").done(), RuleCollision, "\u212a"},
		{"final sigma", good().file("\u03c3", "x").file("\u03c2", "x").done(), RuleCollision, "\u03c2"},
		{"iota subscript", good().file("\u1fb3", "x").file("\u0391\u0399", "x").done(), RuleCollision, "\u0391\u0399"},
		{"under a file", good().file("b", "x").file("b/c", "x").done(), RuleUnderFile, "b/c"},
		{"deep under a file", good().file("b", "x").file("b/c/d/e", "x").done(), RuleUnderFile, "b/c/d/e"},
		{"a file over a directory", good().file("b/c", "x").file("b", "x").done(), RuleUnderFile, "b"},
		{"a file over a listed directory", good().dir("b/").file("b", "x").done(), RuleUnderFile, "b"},
		{"a directory over a file", good().file("b", "x").dir("b/").done(), RuleUnderFile, "b/"},

		{"global path", newTar().add('g', "pax_global_header", paxRecord("path", "other")).file("plugin.json", "x").done(), RuleGlobal, "other"},
		{"global size", newTar().add('g', "pax_global_header", paxRecord("comment", "c")+paxRecord("size", "1")).file("plugin.json", "x").done(), RuleGlobal, ""},
		{"global linkpath", newTar().add('g', "pax_global_header", paxRecord("linkpath", "x")).file("plugin.json", "x").done(), RuleGlobal, ""},
		{"global header in between", newTar().pax("path", "b").add('g', "g", paxRecord("comment", "c")).file("plugin.json", "x").done(), RuleDisagree, ""},
		{"pax size differs", good().pax("size", "3").file("b", "xx").done(), RuleDisagree, "b"},
		{"pax size of nothing", good().pax("size", "0").file("b", "xx").done(), RuleDisagree, "b"},
		{"pax record twice", good().pax("path", "b", "path", "c").file("d", "x").done(), RuleDisagree, "b"},
		{"two pax headers", good().pax("path", "b").pax("path", "c").file("d", "x").done(), RuleDisagree, "c"},
		{"two long names", good().add('L', "L", "b\x00", gnu()).add('L', "L", "c\x00", gnu()).file("d", "x", gnu()).done(), RuleDisagree, "c"},
		{"pax and long name", good().add('L', "L", "b\x00", gnu()).pax("path", "c").file("d", "x").done(), RuleDisagree, "c"},
		{"pax path of another file", good().pax("path", "evil.txt").file("innocent.txt", "x").done(), RuleDisagree, "evil.txt"},
		{"pax path of another file, not ASCII", good().pax("path", "größe.txt").file("innocent.txt", "x").done(), RuleDisagree, "größe.txt"},
		{"long name of another file", good().add('L', "L", "evil.txt\x00", gnu()).file("innocent.txt", "x", gnu()).done(), RuleDisagree, "evil.txt"},
		{"link target of a file", good().file("b", "x", link("c")).done(), RuleDisagree, "b"},
		{"pax link target of a file", good().pax("linkpath", "c").file("b", "x").done(), RuleDisagree, "b"},
		{"long link target of a file", good().add('K', "K", "c\x00", gnu()).file("b", "x", gnu()).done(), RuleDisagree, "b"},
		{"directory with contents", good().add('5', "b", "x").done(), RuleDisagree, "b"},

		{"checksum", flip(good().file("b", "x").done(), 1024), RuleCorrupt, ""},
		{"GNU prefix", good().file("b", "x", gnu(), put(345, "p")).done(), RuleDisagree, "b"},
		{"GNU prefix of a directory", good().add('5', "b", "", gnu(), put(345, "p")).done(), RuleDisagree, "b"},
		{"GNU times in place of a prefix", good().file("b", "x", gnu(), put(345, "14717235410\x0014717235410\x00")).done(), RuleDisagree, "b"},
		{"prefix cut at a mark", good().file("b", "x", put(345, starPrefix), put(508, "tar\x00")).done(), RuleUnsupported, starPrefix + "/b"},
		{"blank size", good().file("b", "", put(124, strings.Repeat(" ", 12))).done(), RuleCorrupt, "b"},
		{"no size", good().file("b", "", put(124, strings.Repeat("\x00", 12))).done(), RuleCorrupt, "b"},
		{"no size of a directory", good().add('5', "b", "", put(124, strings.Repeat("\x00", 12))).done(), RuleCorrupt, "b"},
		{"blank mode", good().file("b", "", put(100, strings.Repeat(" ", 8))).done(), RuleCorrupt, "b"},
		{"size is no number", good().file("b", "x", put(124, "0000000000x\x00")).done(), RuleCorrupt, "b"},
		{"negative size", good().file("b", "x", put(124, "-0000000001\x00")).done(), RuleCorrupt, "b"},
		{"negative binary size", good().file("b", "x", put(124, strings.Repeat("\xff", 12))).done(), RuleCorrupt, "b"},
		{"huge binary size", good().file("b", "x", put(124, "\x80\x00\x00\x00\x7f"+strings.Repeat("\xff", 7))).done(), RuleCorrupt, "b"},
		{"mode is no number", good().file("b", "x", put(100, "rwxr-xr\x00")).done(), RuleCorrupt, "b"},
		{"NUL in a name", good().file("b\x00c", "x").done(), RuleControl, "b"},
		{"NUL in a pax path", good().pax("path", "b\x00é").file("b", "x").done(), RuleControl, "b\x00é"},
		{"NUL in a long name", good().add('L', "L", "b\x00c\x00", gnu()).file("d", "x", gnu()).done(), RuleControl, "b"},
		{"NUL in a prefix", good().file("b", "x", put(345, "p\x00q")).done(), RuleControl, "b"},
		{"empty pax path", good().pax("path", "").file("d", "x").done(), RuleForm, ""},
		{"empty long name", good().add('L', "L", "\x00", gnu()).file("d", "x", gnu()).done(), RuleControl, ""},
		{"binary pax names", good().pax("hdrcharset", "BINARY").file("d", "x").done(), RuleEncoding, ""},
		{"pax record without a length", good().add('x', "x", "path=b\n").file("d", "x").done(), RuleCorrupt, ""},
		{"pax record too short", good().add('x', "x", "3 a=b\n").file("d", "x").done(), RuleCorrupt, ""},
		{"pax record too long", good().add('x', "x", "99 path=b\n").file("d", "x").done(), RuleCorrupt, ""},
		{"pax record without a keyword", good().add('x', "x", "5 =b\n").file("d", "x").done(), RuleCorrupt, ""},
		{"pax record with a huge length", good().add('x', "x", "99999999999999999999 path=b\n").file("d", "x").done(), RuleCorrupt, ""},
		{"pax size is no number", good().pax("size", "-1").file("d", "x").done(), RuleCorrupt, ""},
		{"version 7 header", good().file("b", "x", put(257, strings.Repeat("\x00", 8))).done(), RuleUnsupported, "b"},
		{"padding", flip(good().file("b", "x").done(), 1024+512+1), RuleUnlisted, ""},

		{"no end", good().Bytes(), RuleTruncated, ""},
		{"half an end", append(good().Bytes(), make([]byte, tarBlock)...), RuleTruncated, ""},
		{"cut in contents", good().file("b", strings.Repeat("x", 2000)).Bytes()[:2200], RuleTruncated, "b"},
		{"cut in a header", good().file("b", "x").Bytes()[:1200], RuleTruncated, ""},
		{"pax header of nothing", good().pax("path", "b").done(), RuleTruncated, ""},
		{"data after the end", append(good().done(), "more"...), RuleTrailing, ""},
		{"second block of the end", append(append(good().Bytes(), make([]byte, tarBlock)...), good().Bytes()...), RuleTrailing, ""},
		{"a second tar", append(good().done(), good().done()...), RuleTrailing, ""},
		{"no file", newTar().dir("a").done(), RuleEmpty, ""},
		{"nothing at all", newTar().done(), RuleEmpty, ""},
		{"empty file", nil, RuleTruncated, ""},
		{"some text", []byte("not an archive"), RuleFormat, ""},
		{"bzip2", []byte("BZh91AY&SY"), RuleFormat, ""},

		{"too many bytes", good().file("b", strings.Repeat("x", 64<<10)).done(), RuleUnpackedSize, "b"},
		{"claims too many bytes", good().file("b", "", sized(1<<30)).done(), RuleUnpackedSize, "b"},
		{"too many entries", many(9), RuleEntries, "f8"},
		{"too many implied directories", good().file("a/b/c/d", "x").file("e/f/g/h", "").done(), RuleEntries, "e/f/g/h"},
		{"too long a path", good().file(strings.Repeat("p", 41), "x").done(), RulePathLength, strings.Repeat("p", 41)},
		{"too long a path by far", good().pax("path", strings.Repeat("p", 3000)).file("b", "x").done(), RulePathLength, abbreviate(strings.Repeat("p", 3000))},
		{"too deep", good().file("a/b/c/d/e", "x").done(), RuleDepth, "a/b/c/d/e"},
		{"too long a pax header", good().pax("comment", strings.Repeat("c", 5000)).file("b", "x").done(), RuleHeaderSize, "pax"},
		{"claims a huge pax header", good().add('x', "pax", "", sized(1<<33-1)).done(), RuleHeaderSize, "pax"},
		{"claims a huge long name", good().add('L', "long", "", gnu(), sized(1<<33-1)).done(), RuleHeaderSize, "long"},
		{"too many pax headers", paxes(4), RuleOverhead, ""},
		{"endless empty headers", append(bytes.Repeat(newTar().add('g', "g", "").Bytes(), 30), good().done()...), RuleOverhead, ""},
		{"too much padding", append(good().done(), make([]byte, 16<<10)...), RuleOverhead, ""},
		{"too large a file", make([]byte, 1<<20+1), RuleArchiveSize, ""},
	}
	return cases
}

// many returns a tar of n files.
func many(n int) []byte {
	t := newTar()
	for i := range n {
		t.file("f"+strconv.Itoa(i), "")
	}
	return t.done()
}

// paxes returns a tar with n long pax headers.
func paxes(n int) []byte {
	t := newTar()
	for i := range n {
		t.pax("comment", strings.Repeat("c", 4000)).file("f"+strconv.Itoa(i), "")
	}
	return t.done()
}

// flip returns data with one byte changed.
func flip(data []byte, at int) []byte {
	data = bytes.Clone(data)
	data[at] ^= 0x55
	return data
}

func refusedStreams() []refused {
	tar := good().done()
	zeros := good().file("b", strings.Repeat("\x00", 60<<10)).done()
	gz, zs := gzipped(tar), zstded(tar)
	gzBody := gz[10:]
	skippable := append([]byte("\x50\x2a\x4d\x18\x04\x00\x00\x00"), "hide"...)
	return []refused{
		{"gzip: trailing bytes", append(bytes.Clone(gz), "more"...), RuleTrailing, ""},
		{"gzip: trailing zeros", append(bytes.Clone(gz), 0, 0), RuleTrailing, ""},
		{"gzip: second member", append(bytes.Clone(gz), gzipped(nil)...), RuleTrailing, ""},
		{"gzip: tar split over members", append(gzipped(tar[:512]), gzipped(tar[512:])...), RuleTrailing, "plugin.json"},
		{"gzip: data after the tar", gzipped(append(bytes.Clone(tar), "more"...)), RuleTrailing, ""},
		{"gzip: checksum", flip(gz, len(gz)-8), RuleCorrupt, ""},
		{"gzip: length", flip(gz, len(gz)-1), RuleCorrupt, ""},
		{"gzip: damaged", flip(gz, 20), RuleCorrupt, ""},
		{"gzip: cut", gz[:len(gz)-4], RuleTruncated, ""},
		{"gzip: cut in the header", gz[:5], RuleTruncated, ""},
		{"gzip: unknown method", flip(gz, 2), RuleUnsupported, ""},
		{"gzip: reserved flag", append([]byte{0x1f, 0x8b, 8, 0x80, 0, 0, 0, 0, 0, 255}, gzBody...), RuleUnsupported, ""},
		{"gzip: header checksum", append([]byte{0x1f, 0x8b, 8, 2, 0, 0, 0, 0, 0, 255, 1, 2}, gzBody...), RuleCorrupt, ""},
		{"gzip: endless name", append([]byte{0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 255}, bytes.Repeat([]byte("n"), 10000)...), RuleHeaderSize, ""},
		{"gzip: bomb", gzipped(zeros), RuleRatio, "b"},
		{"gzip: bomb after the tar", gzipped(append(bytes.Clone(tar), make([]byte, 60<<10)...)), RuleOverhead, ""},

		{"zstd: trailing bytes", append(bytes.Clone(zs), "more"...), RuleTrailing, ""},
		{"zstd: second frame", append(bytes.Clone(zs), zstded([]byte("more"))...), RuleTrailing, ""},
		{"zstd: skippable frame before", append(bytes.Clone(skippable), zs...), RuleUnlisted, ""},
		{"zstd: skippable frame after", append(bytes.Clone(zs), skippable...), RuleTrailing, ""},
		{"zstd: data after the tar", zstded(append(bytes.Clone(tar), "more"...)), RuleTrailing, ""},
		{"zstd: checksum", flip(zs, len(zs)-1), RuleCorrupt, ""},
		{"zstd: cut", zs[:len(zs)-6], RuleTruncated, ""},
		{"zstd: cut in the header", zs[:5], RuleTruncated, ""},
		{"zstd: claimed window", append([]byte("\x28\xb5\x2f\xfd\x00\xff"), zs[6:]...), RuleWindow, ""},
		{"zstd: claimed single segment", []byte("\x28\xb5\x2f\xfd\xe0\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x00"), RuleWindow, ""},
		{"zstd: dictionary", append([]byte("\x28\xb5\x2f\xfd\x21\x07"), zs[5:]...), RuleUnsupported, ""},
		{"zstd: reserved bit", append([]byte("\x28\xb5\x2f\xfd\x28"), zs[5:]...), RuleCorrupt, ""},
		{"zstd: reserved block", []byte("\x28\xb5\x2f\xfd\x20\x00\x07\x00\x00"), RuleCorrupt, ""},
		{"zstd: bomb", zstded(zeros), RuleRatio, "b"},
	}
}

func refusedZips() []refused {
	m := zipped{name: "plugin.json", contents: manifest, method: zipDeflate}
	with := func(e zipped) []byte { return zipOf(m, e) }
	b := zipped{name: "b", contents: "contents", method: zipDeflate}
	packed := deflated(b.contents)
	crc := crc32.ChecksumIEEE([]byte(b.contents))
	change := func(f func(e *zipped)) []byte { e := b; f(&e); return with(e) }
	end := func(f func([]byte)) []byte { return zipFile{entries: []zipped{m}, end: f}.bytes() }
	wide := func(f func([]byte)) []byte { return zipFile{entries: []zipped{m}, zip64: true, zip64end: f}.bytes() }
	plain := zipOf(m)
	one := len(zipOf(m)) - zipEndLen - zipCentralLen - len(m.name) // bytes of m's data and headers
	return []refused{
		{"zip: parent", with(zipped{name: "../b", contents: "x"}), RuleParent, "../b"},
		{"zip: absolute", with(zipped{name: "/b", contents: "x"}), RuleAbsolute, "/b"},
		{"zip: backslash", with(zipped{name: `b\c`, contents: "x"}), RuleBackslash, `b\c`},
		{"zip: NUL", with(zipped{name: "b\x00c", contents: "x"}), RuleControl, "b\x00c"},
		{"zip: empty name", with(zipped{contents: "x"}), RuleForm, ""},
		{"zip: duplicate", with(m), RuleDuplicate, "plugin.json"},
		{"zip: case", with(zipped{name: "PLUGIN.json", contents: "x"}), RuleCollision, "PLUGIN.json"},
		{"zip: symbolic link", with(zipped{name: "b", contents: "/etc", attributes: 0o120777 << 16}), RuleLink, "b"},
		{"zip: symbolic link by a DOS zipper", with(zipped{name: "b", contents: "/etc", madeBy: 20, attributes: 0o120777 << 16}), RuleLink, "b"},
		{"zip: device", with(zipped{name: "b", contents: "x", attributes: 0o020644 << 16}), RuleSpecial, "b"},
		{"zip: volume label", with(zipped{name: "b", attributes: dosVolume}), RuleSpecial, "b"},
		{"zip: set-user-id", with(zipped{name: "b", contents: "x", attributes: 0o104755 << 16}), RuleMode, "b"},
		{"zip: directory by attributes", with(zipped{name: "b", attributes: dosDir}), RuleDisagree, "b"},
		{"zip: directory by mode", with(zipped{name: "b", attributes: 0o040755 << 16}), RuleDisagree, "b"},
		{"zip: file by mode", with(zipped{name: "b/", attributes: 0o100644 << 16}), RuleDisagree, "b/"},
		{"zip: directory with contents", with(zipped{name: "b/", contents: "x"}), RuleDisagree, "b/"},
		{"zip: directory with packed contents", with(zipped{name: "b/", contents: "", method: zipDeflate, data: deflated("x")}), RuleDisagree, "b/"},
		{"zip: encrypted", change(func(e *zipped) { e.flags = zipFlagEncrypted }), RuleEncrypted, "b"},
		{"zip: strongly encrypted", change(func(e *zipped) { e.flags = zipFlagStrong | zipFlagEncrypted }), RuleEncrypted, "b"},
		{"zip: masked headers", change(func(e *zipped) { e.flags = zipFlagMasked }), RuleEncrypted, "b"},
		{"zip: AES", change(func(e *zipped) { e.method = 99; e.data = []byte("x") }), RuleEncrypted, "b"},
		{"zip: AES field", change(func(e *zipped) { e.extra = field(0x9901, 1, 2, 3, 4, 5, 6, 7) }), RuleEncrypted, "b"},
		{"zip: AES field in the local header", change(func(e *zipped) { e.local = field(0x9901, 1, 2, 3, 4, 5, 6, 7) }), RuleEncrypted, "b"},
		{"zip: patch", change(func(e *zipped) { e.flags = zipFlagPatch }), RuleUnsupported, "b"},
		{"zip: method", change(func(e *zipped) { e.method = 93; e.data = []byte("x") }), RuleUnsupported, "b"},
		{"zip: ASi field", change(func(e *zipped) { e.extra = field(0x756e, make([]byte, 14)...) }), RuleUnsupported, "b"},
		{"zip: undeclared encoding", with(zipped{name: "b\u00e9", contents: "x", madeBy: 20}), RuleEncoding, "b\u00e9"},
		{"zip: wrong undeclared encoding", with(zipped{name: "b\x82", contents: "x"}), RuleEncoding, "b\x82"},
		{"zip: wrong encoding", with(zipped{name: "b\x82", contents: "x", flags: zipFlagUTF8}), RuleEncoding, "b\x82"},
		{"zip: Unicode path differs", change(func(e *zipped) { e.extra = field(0x7075, append([]byte{1, 0, 0, 0, 0}, "c"...)...) }), RuleDisagree, "b"},
		{"zip: extra field twice", change(func(e *zipped) { e.extra = append(field(0x5455, 0), field(0x5455, 0)...) }), RuleDisagree, "b"},
		{"zip: extra fields cut", change(func(e *zipped) { e.extra = []byte{1, 2, 3} }), RuleCorrupt, "b"},
		{"zip: extra field too long", change(func(e *zipped) { e.local = []byte{1, 2, 9, 0, 0} }), RuleCorrupt, "b"},

		{"zip: names differ", change(func(e *zipped) { e.localName = "c" }), RuleDisagree, "b"},
		{"zip: flags differ", change(func(e *zipped) { e.localFlags = ptr(uint16(zipFlagUTF8)) }), RuleDisagree, "b"},
		{"zip: sizes differ", change(func(e *zipped) { e.localSize = ptr(uint32(3)) }), RuleDisagree, "b"},
		{"zip: stored with two sizes", with(zipped{name: "b", contents: "xyz", size: ptr(uint32(2))}), RuleDisagree, "b"},
		{"zip: unpacks to more", change(func(e *zipped) { e.size = ptr(uint32(3)) }), RuleDisagree, "b"},
		{"zip: unpacks to less", change(func(e *zipped) { e.size = ptr(uint32(300)) }), RuleDisagree, "b"},
		{"zip: checksum", change(func(e *zipped) { e.crc = ptr(uint32(1)) }), RuleCorrupt, "b"},
		{"zip: damaged", change(func(e *zipped) { e.data = []byte("\xff\xff\xff") }), RuleCorrupt, "b"},
		{"zip: bytes after the deflated data", change(func(e *zipped) { e.data = append(bytes.Clone(packed), "hide"...) }), RuleUnlisted, "b"},
		{"zip: gap between entries", zipOf(zipped{name: "b", contents: "x", after: []byte("hide")}, m), RuleUnlisted, "b"},
		{"zip: gap before the directory", zipFile{entries: []zipped{m}, gap: "hide"}.bytes(), RuleUnlisted, "plugin.json"},
		{"zip: descriptor differs", change(func(e *zipped) {
			e.flags = zipFlagDescriptor
			e.after = descriptor(true, crc, uint32(len(packed)), 9)
		}), RuleDisagree, "b"},
		{"zip: descriptor missing", change(func(e *zipped) { e.flags = zipFlagDescriptor }), RuleUnlisted, "b"},
		{"zip: overlap by length", change(func(e *zipped) { e.packed = ptr(uint32(len(packed) + 5)) }), RuleUnlisted, "b"},
		{"zip: two names for one entry", change(func(e *zipped) { e.offset = ptr(uint32(0)) }), RuleUnlisted, "plugin.json"},
		{"zip: entry inside another", zipOf(zipped{name: "outer", contents: string(plain[:one])}, zipped{name: m.name, contents: m.contents, method: m.method, offset: ptr(uint32(zipLocalLen + 5))}), RuleUnlisted, "outer"},
		{"zip: entry in the directory", change(func(e *zipped) { e.offset = ptr(uint32(1 << 20)) }), RuleUnlisted, "b"},
		{"zip: data before", append([]byte("#!/bin/sh\n"), plain...), RuleFormat, ""},
		{"zip: zip before", append(bytes.Clone(plain), plain...), RuleUnlisted, ""},
		{"zip: data before, offsets corrected", append([]byte("PK\x03\x04"), zipFile{prefix: "hidden", entries: []zipped{m}}.bytes()...), RuleUnlisted, ""},
		{"zip: unlisted entry first", zipFile{prefix: string(plain[:one]), entries: []zipped{b}}.bytes(), RuleUnlisted, ""},
		{"zip: data after", append(bytes.Clone(plain), "more"...), RuleTrailing, ""},
		{"zip: cut", plain[:len(plain)-3], RuleTruncated, ""},
		{"zip: no end", plain[:len(plain)-zipEndLen], RuleTruncated, ""},
		{"zip: end in a comment", zipFile{entries: []zipped{m}, comment: "PK\x05\x06" + strings.Repeat("\x00", 30)}.bytes(), RuleTrailing, ""},
		{"zip: two ends", zipFile{entries: []zipped{m}, comment: "PK\x05\x06" + strings.Repeat("\x00", 18)}.bytes(), RuleDisagree, ""},
		{"zip: fewer entries than listed", end(func(b []byte) { le.PutUint16(b[8:], 2); le.PutUint16(b[10:], 2) }), RuleCorrupt, ""},
		{"zip: more entries than listed", zipFile{entries: []zipped{m, b}, end: func(b []byte) { le.PutUint16(b[8:], 1); le.PutUint16(b[10:], 1) }}.bytes(), RuleUnlisted, ""},
		{"zip: volumes", end(func(b []byte) { le.PutUint16(b[4:], 1) }), RuleUnsupported, ""},
		{"zip: directory elsewhere", end(func(b []byte) { le.PutUint32(b[16:], 1<<31) }), RuleUnlisted, ""},
		{"zip: zip64 differs", wide(func(b []byte) { le.PutUint64(b[24:], 2); le.PutUint64(b[32:], 2) }), RuleDisagree, ""},
		{"zip: zip64 overflows", wide(func(b []byte) { le.PutUint64(b[48:], 1<<63) }), RuleDisagree, ""},
		{"zip: zip64 record of another length", wide(func(b []byte) { le.PutUint64(b[4:], 100) }), RuleDisagree, ""},
		{"zip: zip64 field missing", change(func(e *zipped) { e.size = ptr(uint32(0xffffffff)) }), RuleDisagree, "b"},
		{"zip: zip64 field for nothing", change(func(e *zipped) { e.extra = field(1, 9, 0, 0, 0, 0, 0, 0, 0) }), RuleDisagree, "b"},
		{"zip: negative size", change(func(e *zipped) {
			e.size, e.extra = ptr(uint32(0xffffffff)), field(1, bytes.Repeat([]byte{0xff}, 8)...)
		}), RuleCorrupt, "b"},
		{"zip: empty", zipOf(), RuleEmpty, ""},
		{"zip: directories only", zipOf(zipped{name: "b/"}), RuleEmpty, ""},
		{"zip: too many entries", zipOf(make([]zipped, 11)...), RuleEntries, ""},
		{"zip: claims too many entries", end(func(b []byte) { le.PutUint16(b[8:], 0xfff0); le.PutUint16(b[10:], 0xfff0) }), RuleEntries, ""},
		{"zip: too long a name", with(zipped{name: strings.Repeat("n", 1000), contents: "x"}), RulePathLength, ""},
		{"zip: bomb", with(zipped{name: "b", contents: strings.Repeat("\x00", 60<<10), method: zipDeflate}), RuleRatio, "b"},
		{"zip: claims too many bytes", change(func(e *zipped) { e.size = ptr(uint32(1 << 30)) }), RuleUnpackedSize, "b"},
	}
}

// TestRefusals runs every case as it is, and the tars compressed as well.
func TestRefusals(t *testing.T) {
	seen := map[Rule]bool{}
	run := func(c refused) {
		seen[c.rule] = true
		t.Run(c.name, func(t *testing.T) {
			_, err := newSandbox(t).extract(c.data, Options{Limits: small})
			wantRefusal(t, err, c.rule, c.entry)
		})
	}
	for _, c := range refusedTars() {
		run(c)
		switch c.rule {
		case RuleFormat, RuleArchiveSize, RuleOverhead:
			continue // about the file itself, or judged as a bomb before
		}
		if len(c.data) > 0 {
			run(refused{"tar.gz: " + c.name, gzipped(c.data), c.rule, c.entry})
			run(refused{"tar.zst: " + c.name, zstded(c.data), c.rule, c.entry})
		}
	}
	for _, c := range slices.Concat(refusedStreams(), refusedZips(), polyglots()) {
		run(c)
	}
	for _, r := range rules(t) {
		switch r {
		case RuleIgnoreFile, RuleChanged: // of directories; see source_test.go
			continue
		}
		if !seen[r] {
			t.Errorf("no case for the rule %s", r)
		}
	}
}

// rules returns every Rule that the package declares.
func rules(t *testing.T) []Rule {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "refusal.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []Rule
	ast.Inspect(f, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			if id, ok := v.Type.(*ast.Ident); ok && id.Name == "Rule" {
				s, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, Rule(s))
			}
		}
		return true
	})
	if len(all) < 30 {
		t.Fatalf("only %d rules found", len(all))
	}
	return all
}

// TestRefusalText holds that a message says where and what, as the archive spells it:
// escaping is for who shows it.
func TestRefusalText(t *testing.T) {
	_, err := newSandbox(t).extract(good().file("a\u202eb", "x").done(), Options{})
	if err == nil || err.Error() != "\"given.archive\": entry \"a\u202eb\": invisible: the name has the invisible character U+202E" {
		t.Errorf("got %v", err)
	}
}
