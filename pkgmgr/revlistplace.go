package pkgmgr

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/switchyard-plugins/switchyard/pkgmgr/project"
	"github.com/switchyard-plugins/switchyard/verify"
)

// A Fetcher fetches files over https; a session of the verify worker does.
type Fetcher interface {
	Fetch(context.Context, verify.FetchRequest, io.Writer) (*verify.Fetched, error)
	Close()
}

// errNoFetcher says that this Home was opened by a caller that opens no connection.
var errNoFetcher = errors.New("nobody opens a connection here")

// openPlace opens the place that a source names. The caller closes it.
func (h *Home) openPlace(ctx context.Context, s listSource) (listPlace, func(), error) {
	if IsListURL(s.name) {
		at, err := project.ParseListURL(s.name)
		if err != nil {
			return nil, nil, &BadListURL{s.name, err}
		}
		if h.fetcher == nil {
			return nil, nil, errNoFetcher
		}
		f, err := h.fetcher(ctx)
		if err != nil {
			return nil, nil, err
		}
		return &listServer{home: h, fetcher: f, at: at, public: s.project, until: time.Now().Add(maxFetching)}, f.Close, nil
	}
	info, err := os.Stat(s.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, &NotFound{Kind: "source", Name: s.name}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("revocation list: %w", err)
	}
	d := &listDirectory{dir: filepath.Dir(s.name), name: filepath.Base(s.name)}
	if info.IsDir() {
		d = &listDirectory{dir: s.name, name: ListFile}
	}
	return d, func() {}, nil
}

// A listDirectory is a directory of this machine.
type listDirectory struct{ dir, name string }

func (d *listDirectory) far() bool        { return false }
func (d *listDirectory) listName() string { return d.name }

func (d *listDirectory) read(_ context.Context, name string, limit int64) ([]byte, error) {
	return readGiven(filepath.Join(d.dir, name), limit)
}

func (d *listDirectory) copyList(_ context.Context, to io.Writer, limit int64) error {
	path := filepath.Join(d.dir, d.name)
	f, _, err := openGiven(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &NotFound{Kind: "source", Name: path}
	}
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := io.Copy(to, io.LimitReader(f, limit+1))
	if err == nil && n > limit {
		err = tooLarge(path, limit)
	}
	return err
}

// keys reads all public keys of the directory: a key may have any name there.
func (d *listDirectory) keys(context.Context, []string) ([]string, error) { return keysIn(d.dir) }

// keysIn reads the public keys in a directory. They prove who signed; who may is what
// the root says, by the digests of keys.
func keysIn(dir string) ([]string, error) {
	names, err := readNames(dir)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, ".pub") })
	slices.Sort(names)
	if len(names) > maxKeys {
		return nil, &givenFile{path: dir, reason: fmt.Sprintf("holds %d keys, at most %d are read", len(names), maxKeys)}
	}
	var keys []string
	for _, name := range names {
		text, err := readGiven(filepath.Join(dir, name), maxKeyBytes)
		if err != nil {
			return nil, err
		}
		keys = append(keys, string(text))
	}
	return keys, nil
}

// A listServer is a directory behind https.
type listServer struct {
	home    *Home
	fetcher Fetcher
	at      project.ListURL
	public  bool
	until   time.Time // nothing more is fetched
}

// maxFetching bounds the time after which no further file of a list is fetched. Each file
// has a bound of its own.
const maxFetching = 20 * time.Minute

func (s *listServer) far() bool        { return true }
func (s *listServer) listName() string { return s.at.Name }

// fetch fetches a file. A refusal keeps its code; one that says what a place says of any
// of its files is that.
func (s *listServer) fetch(ctx context.Context, name string, limit int64, to io.Writer) error {
	from := s.at.File(name)
	if time.Now().After(s.until) {
		return &FetchRefused{URL: s.at.String(), Project: s.public,
			Refusal: &verify.Refusal{Code: verify.CodeNetworkTimeout, Message: fmt.Sprintf("not everything has come within %v", maxFetching)}}
	}
	s.home.on.stage("fetching " + from)
	if s.home.on.Bytes != nil {
		to = &counted{to: to, tell: s.home.on.Bytes}
	}
	_, err := s.fetcher.Fetch(ctx, verify.FetchRequest{URL: from, Limit: limit, Public: s.public}, to)
	var refusal *verify.Refusal
	if errors.As(err, &refusal) {
		switch refusal.Code {
		case verify.CodeNetworkNotFound:
			return fs.ErrNotExist
		case verify.CodeNetworkTooLarge:
			return tooLarge(from, limit)
		}
		return &FetchRefused{URL: s.at.String(), Project: s.public, Refusal: refusal}
	}
	return err
}

// counted tells how much was written.
type counted struct {
	to   io.Writer
	done int64
	tell func(done, total int64)
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.done += int64(n)
	c.tell(c.done, 0)
	return n, err
}

func (s *listServer) read(ctx context.Context, name string, limit int64) ([]byte, error) {
	var b bytes.Buffer
	if err := s.fetch(ctx, name, limit, &b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func (s *listServer) copyList(ctx context.Context, to io.Writer, limit int64) error {
	err := s.fetch(ctx, s.at.Name, limit, to)
	if errors.Is(err, fs.ErrNotExist) {
		return &NotFound{Kind: "source", Name: s.at.File(s.at.Name)}
	}
	return err
}

// keys fetches the keys with these ids under the names that revocations create gives them:
// what lies in a directory cannot be asked for. One that is another key proves nothing.
func (s *listServer) keys(ctx context.Context, ids []string) ([]string, error) {
	a, err := s.home.assurance()
	if err != nil {
		return nil, err
	}
	here := map[string]bool{}
	for _, text := range a.Keys {
		if id, err := verify.KeyID(text); err == nil {
			here[id] = true
		}
	}
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return here[id] })
	if len(ids) > maxKeys {
		return nil, &givenFile{path: s.at.String(), reason: fmt.Sprintf("names %d keys in its roots, at most %d are fetched", len(ids), maxKeys)}
	}
	var keys []string
	for _, id := range ids {
		text, err := s.read(ctx, KeyFile(id), maxKeyBytes)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if found, err := verify.KeyID(string(text)); err == nil && found == id {
			keys = append(keys, string(text))
		}
	}
	return keys, nil
}

// A BadListURL says why no list can be fetched from a URL.
type BadListURL struct {
	URL string
	Err error
}

func (e *BadListURL) Error() string { return fmt.Sprintf("\"%s\" %v", e.URL, e.Err) }

// Unwrap returns the reason.
func (e *BadListURL) Unwrap() error { return e.Err }

// A FetchRefused says why nothing could be fetched from where a list is published.
type FetchRefused struct {
	URL     string // of the directory or list
	Project bool   // a project's file names it
	Refusal *verify.Refusal
}

func (e *FetchRefused) Error() string {
	return "revocation list of " + e.URL + ": " + e.Refusal.Message
}

// Unwrap returns the refusal.
func (e *FetchRefused) Unwrap() error { return e.Refusal }
