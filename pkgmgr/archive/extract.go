package archive

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
)

// Extract unpacks the archive file src below dst, which is an empty directory,
// and returns what it wrote: files with mode 0444 or 0555 and the directories
// that they need, mode 0755 under the umask. The name serves messages only; the
// format is told by the contents. A single top directory that holds everything,
// plugin.json directly in it, is removed.
//
// The error is a *Refusal for an archive that is not acceptable, else the file
// system's or the context's; the caller then removes what is below dst. Nothing
// is ever written outside of it. When Extract returns, no goroutine of its own
// is left. Memory is bounded by about 16 MiB and the zstd window, whatever the
// archive says.
func Extract(ctx context.Context, src *os.File, name string, dst *os.Root, o Options) (*Tree, error) {
	info, err := src.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w", name, os.ErrInvalid)
	}
	size := info.Size()
	if most := o.limits().Archive; size > most {
		return nil, named(refuse("", RuleArchiveSize, "the file has %d bytes, at most %d are allowed", size, most), name, "")
	}
	c, err := sniff(src, size)
	if err == nil {
		err = checkOneFormat(src, size, c)
	}
	if err != nil {
		return nil, named(err, name, "")
	}
	x := &extraction{
		ctx: ctx, src: src, size: size, options: o,
		names: newNamespace(o.limits()),
		sink:  newSink(ctx, dst),
	}
	if c == containerZip {
		err = x.zip()
	} else {
		err = x.tar(c)
	}
	if err = x.sink.close(err); err != nil {
		return nil, named(err, name, x.entry)
	}
	return x.finish(name, dst)
}

// An extraction is one run of Extract.
type extraction struct {
	ctx     context.Context
	src     *os.File
	size    int64
	options Options
	names   *namespace
	sink    *sink
	noModes bool
	entry   string // being read, for refusals of what is below entries
}

func (x *extraction) finish(name string, dst *os.Root) (*Tree, error) {
	top, err := x.names.finish()
	if err != nil {
		return nil, named(err, name, "")
	}
	t := x.sink.tree(top)
	t.NoModes = x.noModes
	if top != "" {
		if err := strip(dst, top, t.Files); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// tar unpacks entry by entry as they arrive.
func (x *extraction) tar(c container) error {
	s, err := openStream(x.ctx, x.src, x.size, c, x.options)
	if err != nil {
		return err
	}
	defer s.close()
	t := &tarReader{in: s, limits: x.options.limits()}
	for {
		x.entry = ""
		e, err := t.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		x.entry = e.name
		path, r := x.names.add(e.name, e.dir, e.size)
		if r != nil {
			return r
		}
		if e.dir {
			continue
		}
		j, err := x.sink.start(path, e.size, e.mode&0o100 != 0)
		if err != nil {
			return err
		}
		if err := x.sink.writeFrom(j, t.read); err != nil {
			return err
		}
	}
}

// zip judges all entries before it unpacks any, then lets the workers unpack
// them side by side.
func (x *extraction) zip() error {
	entries, err := readZip(x.src, x.size, x.options.limits())
	if err != nil {
		return err
	}
	paths := make([]string, len(entries))
	x.noModes = true
	for i := range entries {
		e := &entries[i]
		path, r := x.names.add(e.name, e.dir, e.size)
		if r != nil {
			return r
		}
		paths[i] = path
		x.noModes = x.noModes && (e.dir || !e.modes)
	}
	if r := x.options.limits().ratio(x.names.unpacked, x.size); r != nil {
		// The whole breaks the rule; its largest entry is where to look.
		largest := slices.MaxFunc(entries, func(a, b zipEntry) int { return cmp.Compare(a.size, b.size) })
		r.Entry = largest.name
		r.Detail += fmt.Sprintf("; this is the largest entry, of %d bytes", largest.size)
		return r
	}
	var empty inflater
	for i := range entries {
		e := &entries[i]
		if e.dir {
			if err := empty.unpack(x.ctx, x.src, e, func([]byte) error { return nil }); err != nil {
				return err
			}
			continue
		}
		j, err := x.sink.start(paths[i], e.size, e.mode&0o100 != 0)
		if err != nil {
			return err
		}
		j.pull = func(w *worker) error { return w.inflate.unpack(w.ctx, x.src, e, w.put) }
		if err := x.sink.submit(j); err != nil {
			return err
		}
		x.options.progress(e.data+e.packed, x.size)
	}
	x.options.progress(x.size, x.size)
	return nil
}
