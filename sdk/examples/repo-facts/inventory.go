package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

const defaultInventory = "inventory.json"

// inventoryStart is how every inventory begins. A file that begins otherwise is
// somebody else's and is never replaced.
const inventoryStart = "{\n  \"kind\": \"repo-facts/inventory\",\n  \"version\": 1,\n"

type inventoryLine struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

type skippedLine struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// inventory writes the inventory of root to target, in one step: a reader finds
// the old file or the new one. If ctx ends before that step, nothing changes.
func inventory(ctx context.Context, root *os.Root, target string, b bounds) (plugin.OperateResult, error) {
	var none plugin.OperateResult
	if err := checkTarget(root, target); err != nil {
		return none, err
	}
	lines, skips, err := hashAll(ctx, root, target, b)
	if err != nil {
		return none, err
	}
	text := renderInventory(lines, skips)
	if err := context.Cause(ctx); err != nil {
		return none, fmt.Errorf("cancelled before anything was written: %w", err)
	}
	if err := replace(root, target, text); err != nil {
		return none, err
	}
	var total int64
	for _, l := range lines {
		total += l.Size
	}
	sum := sha256.Sum256(text)
	output, err := plugin.JSON(map[string]any{
		"path": target, "files": len(lines), "bytes": total, "skipped": len(skips), "sha256": hex.EncodeToString(sum[:]),
	})
	if err != nil {
		return none, err
	}
	r := plugin.OperateResult{
		Status:  plugin.Succeeded,
		Summary: fmt.Sprintf("wrote %s with %s", target, count(len(lines), "file", "files")),
		Output:  output,
	}
	if len(skips) > 0 {
		r.Status = plugin.PartiallySucceeded
		r.Summary += fmt.Sprintf("; %d could not be included", len(skips))
	}
	return r, nil
}

// checkTarget refuses a target that is not a place for an inventory. The paths
// that only look as if they were inside are refused by os.Root.
func checkTarget(root *os.Root, target string) error {
	if !fs.ValidPath(target) || target == "." || strings.ContainsAny(target, "\\:\x00") {
		return plugin.BadInput("input: path must be a relative path with \"/\" inside the project")
	}
	for part := range strings.SplitSeq(target, "/") {
		for _, name := range skipped {
			if strings.EqualFold(part, name) {
				return plugin.BadInput("input: path must not lead into %s", name)
			}
		}
	}
	info, err := root.Lstat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return plugin.Errorf("%v", err)
	case !info.Mode().IsRegular():
		return plugin.Errorf("%s exists and is not a regular file", target)
	}
	h, err := openRegular(root, target)
	if err != nil {
		return err
	}
	defer h.Close()
	start := make([]byte, len(inventoryStart))
	if _, err := io.ReadFull(h, start); err != nil || string(start) != inventoryStart {
		return plugin.Errorf("%s exists and is not an inventory; it is left alone", target)
	}
	return nil
}

// hashAll hashes every file but the target. An inventory with holes would be
// worse than none, so a bound that is reached is an error.
func hashAll(ctx context.Context, root *os.Root, target string, b bounds) ([]inventoryLine, []skippedLine, error) {
	var lines []inventoryLine
	var skips []skippedLine
	var total int64
	t, err := walk(ctx, root, b, func(f file) error {
		if f.path == target {
			return nil
		}
		if !utf8.ValidString(f.path) {
			skips = append(skips, skippedLine{strings.ToValidUTF8(f.path, "\uFFFD"), "the name is not UTF-8"})
			return nil
		}
		if total += f.size; total > b.hashed {
			return plugin.Errorf("the project has more than %s; nothing was written", size(b.hashed))
		}
		l, err := hash(ctx, f)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, fs.ErrNotExist):
			return nil // gone since it was listed
		case err != nil:
			skips = append(skips, skippedLine{f.path, reason(err)})
			return nil
		}
		lines = append(lines, l)
		return nil
	})
	switch {
	case ctx.Err() != nil:
		return nil, nil, fmt.Errorf("cancelled before anything was written: %w", context.Cause(ctx))
	case err != nil:
		return nil, nil, err
	case t.stopped != "":
		return nil, nil, plugin.Errorf("%s; nothing was written", t.stopped)
	}
	for _, p := range t.unreadable {
		skips = append(skips, skippedLine{strings.ToValidUTF8(p, "\uFFFD"), "cannot be read"})
	}
	if t.moreUnreadable > 0 {
		return nil, nil, plugin.Errorf("%d directories cannot be read; nothing was written", len(t.unreadable)+t.moreUnreadable)
	}
	return lines, skips, nil
}

func hash(ctx context.Context, f file) (inventoryLine, error) {
	h, err := f.open()
	if err != nil {
		return inventoryLine{}, err
	}
	defer h.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, cancellable{ctx, h})
	if err != nil {
		return inventoryLine{}, err
	}
	return inventoryLine{Path: f.path, Size: n, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}

// cancellable is a reader that fails once ctx has ended.
type cancellable struct {
	ctx context.Context
	r   io.Reader
}

func (c cancellable) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// reason is an error without the path that stands beside it anyway.
func reason(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err.Error()
	}
	return err.Error()
}

// renderInventory writes one file a line, so that two inventories can be
// compared by eye. The same files give the same bytes.
func renderInventory(lines []inventoryLine, skips []skippedLine) []byte {
	var b bytes.Buffer
	b.WriteString(inventoryStart)
	writeList(&b, "files", lines)
	b.WriteString(",\n")
	writeList(&b, "skipped", skips)
	b.WriteString("\n}\n")
	return b.Bytes()
}

func writeList[T any](b *bytes.Buffer, name string, list []T) {
	fmt.Fprintf(b, "  %q: [", name)
	for i, x := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n    ")
		line, err := json.Marshal(x)
		if err != nil {
			panic(err) // strings and a number
		}
		b.Write(line)
	}
	if len(list) > 0 {
		b.WriteString("\n  ")
	}
	b.WriteByte(']')
}

// replace puts text in the place of target by a temporary file beside it.
func replace(root *os.Root, target string, text []byte) (err error) {
	temporary := path.Join(path.Dir(target), "."+path.Base(target)+"."+rand.Text()[:12]+".tmp")
	h, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			h.Close()
			root.Remove(temporary)
		}
	}()
	w := bufio.NewWriter(h)
	if _, err = w.Write(text); err != nil {
		return err
	}
	if err = errors.Join(w.Flush(), h.Sync(), h.Close()); err != nil {
		return err
	}
	if err = root.Rename(temporary, target); err != nil {
		return err
	}
	return syncDirectory(root, path.Dir(target))
}

// syncDirectory makes the rename last. Systems that cannot sync a directory do
// that by themselves.
func syncDirectory(root *os.Root, name string) error {
	d, err := root.Open(name)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrInvalid) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}
