package archive

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// Pack writes the directory dir as an archive to w and returns what it packed,
// with paths as Extract will unpack them. The bytes depend on the files' paths,
// contents and execute bits only: not on times, owners, the umask, the order of
// a directory, the time zone or the number of processors.
//
// It leaves out what the ignore rules name, and refuses what Extract would
// refuse, a ratio or a size of the whole included. After an error what w has
// received is worth nothing.
func Pack(ctx context.Context, dir *os.Root, w io.Writer, f Format, o Options) (*Tree, error) {
	l, err := list(ctx, dir, o)
	if err != nil {
		return nil, named(err, dir.Name(), "")
	}
	count := &counter{w: w}
	buffered := bufio.NewWriterSize(count, readSize)
	p, err := newPacker(f, buffered)
	if err != nil {
		return nil, err
	}
	t, err := packFiles(ctx, dir, l, p, o)
	unpacked, e := p.close()
	if err == nil {
		err = e
	}
	if err == nil {
		err = buffered.Flush()
	}
	if err == nil {
		err = o.limits().checkPacked(unpacked, count.n)
	}
	if err != nil {
		return nil, named(err, dir.Name(), "")
	}
	return t, nil
}

// checkPacked applies to a finished archive the bounds that only the whole has.
func (l Limits) checkPacked(unpacked, archive int64) error {
	if archive > l.Archive {
		return refuse("", RuleArchiveSize, "the archive has %d bytes, at most %d are allowed", archive, l.Archive)
	}
	if r := l.ratio(unpacked, archive); r != nil {
		return r
	}
	return nil
}

// A packer writes one kind of archive. Paths come in byte order.
type packer interface {
	// begin starts a file, whose contents follow by Write, and end ends it.
	begin(path string, size int64, executable bool) error
	io.Writer
	end() error
	// close returns how many bytes Extract will count as unpacked.
	close() (int64, error)
}

func newPacker(f Format, w io.Writer) (packer, error) {
	switch f {
	case TarZst:
		// A single goroutine and stated sizes: the defaults of the encoder
		// depend on the machine.
		z, err := zstd.NewWriter(w,
			zstd.WithEncoderConcurrency(1),
			zstd.WithEncoderLevel(zstd.SpeedBetterCompression),
			zstd.WithWindowSize(8<<20),
			zstd.WithEncoderCRC(true),
			zstd.WithLowerEncoderMem(false),
			zstd.WithZeroFrames(true),
		)
		if err != nil {
			return nil, err
		}
		return newTarWriter(z), nil
	case TarGz:
		z, err := newGzipWriter(w)
		if err != nil {
			return nil, err
		}
		return newTarWriter(z), nil
	case Zip:
		return newZipWriter(w), nil
	}
	return nil, fmt.Errorf("\"%s\": %w", string(f), ErrFormatName)
}

func packFiles(ctx context.Context, root *os.Root, l *listing, p packer, o Options) (*Tree, error) {
	t := &Tree{Stripped: l.top, Unpacked: l.unpacked, NoModes: !unixModes && o.Executable == ""}
	from := newTrail(root, false)
	defer from.close()
	c := &packCopy{ctx: ctx, hash: sha256.New(), buf: make([]byte, chunkSize), tally: tally{total: l.unpacked, report: o.Progress}}
	for _, f := range l.files {
		parent, _ := splitPath(f.path)
		d, err := from.enter(parent)
		if err != nil {
			return nil, err
		}
		sum, err := c.file(d.root, f, l.below(f), p)
		if err != nil {
			return nil, err
		}
		mode := digest.ModeFile
		if f.executable {
			mode = digest.ModeExecutable
		}
		t.Files = append(t.Files, digest.File{Path: l.below(f), Mode: mode, Size: f.size, SHA256: sum})
	}
	return t, nil
}

// A packCopy moves files into a packer and hashes them.
type packCopy struct {
	ctx   context.Context
	hash  hash.Hash
	buf   []byte
	tally tally
}

func (c *packCopy) file(d *os.Root, f sourceFile, path string, p packer) (string, error) {
	in, err := openSource(d, f)
	if err != nil {
		return "", err
	}
	defer in.Close()
	if err := p.begin(path, f.size, f.executable); err != nil {
		return "", err
	}
	c.hash.Reset()
	for left := f.size; ; {
		if err := context.Cause(c.ctx); err != nil {
			return "", err
		}
		n, err := in.Read(c.buf)
		left -= int64(n)
		if left < 0 || err == io.EOF && left > 0 {
			return "", refuse(f.path, RuleChanged, "the file changed while it was read")
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", err
		}
		c.hash.Write(c.buf[:n])
		if _, err := p.Write(c.buf[:n]); err != nil {
			return "", err
		}
		c.tally.add(n)
	}
	return hex.EncodeToString(c.hash.Sum(nil)), p.end()
}

// A counter counts what passes to w.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
