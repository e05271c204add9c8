// Package digest computes and names the SHA-256 identities that the product
// decides by: file, package, manifest, fingerprint and archive digests.
//
// It reads bytes and returns names. It opens no file, knows no manifest member (the
// one that a digest leaves out is package sessionmanifest's) and takes no decision. The definitions are those of docs/protocol-call.md,
// section "Digests".
package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gowebpki/jcs"

	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
)

// Prefix names the only algorithm in use. It is part of the canonical spelling.
const Prefix = "sha256:"

// A Digest is the canonical spelling "sha256:" followed by 64 lower-case hex
// digits. The zero value "" means "none" and equals no computed digest.
type Digest string

// ErrSyntax is returned by Parse for anything that is not a SHA-256 digest.
var ErrSyntax = errors.New("not a SHA-256 digest: want 64 hex digits, with or without the prefix \"sha256:\"")

// Parse accepts both spellings that people copy, bare and prefixed, in either
// case, and returns the canonical one.
func Parse(s string) (Digest, error) {
	bare := strings.TrimPrefix(s, Prefix)
	if len(bare) != sha256.Size*2 {
		return "", ErrSyntax
	}
	if _, err := hex.DecodeString(bare); err != nil {
		return "", ErrSyntax
	}
	return Digest(Prefix + strings.ToLower(bare)), nil
}

// IsCanonical reports whether s is exactly in the canonical spelling.
func IsCanonical(s string) bool {
	bare, ok := strings.CutPrefix(s, Prefix)
	return ok && isLowerHex(bare)
}

func isLowerHex(s string) bool {
	if len(s) != sha256.Size*2 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// FromSum names a finished SHA-256 sum.
func FromSum(sum [sha256.Size]byte) Digest {
	return FromBytes(sum[:])
}

// FromBytes names a finished SHA-256 sum of 32 bytes; it panics on another length.
func FromBytes(sum []byte) Digest {
	if len(sum) != sha256.Size {
		panic("digest: sum is not 32 bytes")
	}
	return Digest(Prefix + hex.EncodeToString(sum))
}

// Of returns the digest of b.
func Of(b []byte) Digest { return FromSum(sha256.Sum256(b)) }

// Hex returns the bare 64 digits, the spelling that the daemon shows and that
// the data directory uses in names after "sha256-".
func (d Digest) Hex() string { return strings.TrimPrefix(string(d), Prefix) }

// DirName returns "sha256-<hex>", the digest's spelling as a directory name.
func (d Digest) DirName() string { return "sha256-" + d.Hex() }

// ParseDirName is the inverse of DirName.
func ParseDirName(name string) (Digest, error) {
	bare, ok := strings.CutPrefix(name, "sha256-")
	if !ok {
		return "", ErrSyntax
	}
	if !isLowerHex(bare) {
		return "", ErrSyntax
	}
	return Digest(Prefix + bare), nil
}

// Short returns the first 12 hex digits, for tables only; never compare by it.
func (d Digest) Short() string {
	h := d.Hex()
	if len(h) > 12 {
		h = h[:12]
	}
	return h
}

// The two modes that a package digest knows.
const (
	ModeFile       = "0644"
	ModeExecutable = "0755"
)

// A File is one entry of the array that the package digest covers.
type File struct {
	Path   string // relative, '/'-separated, UTF-8
	Mode   string // ModeFile or ModeExecutable
	Size   int64  // bytes
	SHA256 string // bare lower-case hex
}

func (f File) check() error {
	switch {
	case f.Path == "" || !utf8.ValidString(f.Path):
		return errors.New("the path is empty or not UTF-8")
	case f.Mode != ModeFile && f.Mode != ModeExecutable:
		return fmt.Errorf("the mode is %q, not %q or %q", f.Mode, ModeFile, ModeExecutable)
	case f.Size < 0 || f.Size > maxInteger:
		return fmt.Errorf("the size %d is out of range", f.Size)
	case !isLowerHex(f.SHA256):
		return errors.New("the SHA-256 is not 64 lower-case hex digits")
	}
	return nil
}

// maxInteger is the largest size that RFC 8785 writes in plain decimal digits
// and every reader reads back.
const maxInteger = 1<<53 - 1

// Package returns the package digest: SHA-256 over the RFC 8785 form of the
// array of {"path","mode","size","sha256"}, sorted by path in byte order.
// The slice is not modified. A path that occurs twice is an error, and so is a
// File whose fields break what their comments say: it has no such form.
func Package(files []File) (Digest, error) {
	sorted := slices.Clone(files)
	slices.SortFunc(sorted, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	h := sha256.New()
	buf := make([]byte, 0, 4096)
	buf = append(buf, '[')
	for i, f := range sorted {
		if err := f.check(); err != nil {
			return "", fmt.Errorf("package digest: %q: %w", f.Path, err)
		}
		if i > 0 {
			if sorted[i-1].Path == f.Path {
				return "", fmt.Errorf("package digest: %q occurs twice", f.Path)
			}
			buf = append(buf, ',')
		}
		buf = appendFile(buf, f)
		if len(buf) > 3500 {
			h.Write(buf)
			buf = buf[:0]
		}
	}
	buf = append(buf, ']')
	h.Write(buf)
	return FromBytes(h.Sum(nil)), nil
}

// appendFile writes one element in RFC 8785 form: members in UTF-16 order of
// their names, minimal string escapes, integers in plain decimal. The file has
// been checked, so that only its path can need escapes.
func appendFile(buf []byte, f File) []byte {
	buf = append(buf, `{"mode":"`...)
	buf = append(buf, f.Mode...)
	buf = append(buf, `","path":`...)
	buf = appendString(buf, f.Path)
	buf = append(buf, `,"sha256":"`...)
	buf = append(buf, f.SHA256...)
	buf = append(buf, `","size":`...)
	buf = strconv.AppendInt(buf, f.Size, 10)
	return append(buf, '}')
}

func appendString(buf []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	buf = append(buf, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			buf = append(buf, '\\', c)
		case c == '\b':
			buf = append(buf, '\\', 'b')
		case c == '\t':
			buf = append(buf, '\\', 't')
		case c == '\n':
			buf = append(buf, '\\', 'n')
		case c == '\f':
			buf = append(buf, '\\', 'f')
		case c == '\r':
			buf = append(buf, '\\', 'r')
		case c < 0x20:
			buf = append(buf, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			buf = append(buf, c)
		}
	}
	return append(buf, '"')
}

// Canonical returns the RFC 8785 form of one JSON document. Read the document
// with ijson first: this function repairs nothing and refuses only what cannot
// be canonicalized.
func Canonical(document []byte) ([]byte, error) {
	out, err := jcs.Transform(document)
	if err != nil {
		return nil, fmt.Errorf("canonical form: %w", err)
	}
	return out, nil
}

// Manifest returns the manifest digest of a call-protocol manifest: SHA-256
// over the RFC 8785 form of the whole document.
func Manifest(document []byte) (Digest, error) {
	c, err := Canonical(document)
	if err != nil {
		return "", err
	}
	return Of(c), nil
}

// SessionManifest returns the manifest digest of a session package's manifest:
// SHA-256 over the RFC 8785 form of the document without provenance.manifestDigest.
func SessionManifest(document []byte) (Digest, error) {
	unsigned, err := sessionmanifest.Unsigned(document)
	if err != nil {
		return "", err
	}
	return Manifest(unsigned)
}

// Schema returns the digest by which a manifest refers to a schema: SHA-256 over the
// RFC 8785 form of the whole document.
func Schema(document []byte) (Digest, error) { return Manifest(document) }

// Fingerprint returns SHA-256 over the manifest's bytes followed by the
// executable's. It covers no other file of the package.
func Fingerprint(manifest []byte, executable io.Reader) (Digest, error) {
	h := sha256.New()
	h.Write(manifest)
	if _, err := io.Copy(h, executable); err != nil {
		return "", fmt.Errorf("fingerprint: %w", err)
	}
	return FromBytes(h.Sum(nil)), nil
}
