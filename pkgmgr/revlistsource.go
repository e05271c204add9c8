package pkgmgr

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/switchyard-plugins/switchyard/schemas/ijson"
)

// sourceFile remembers beside an issuer's list where the user said that it comes from.
const (
	sourceFile     = "source.json"
	sourceVersion  = 1
	maxSourceBytes = 64 << 10
	maxSourceURL   = 1 << 10
)

// keptSource is the content of sourceFile.
type keptSource struct {
	Format int    `json:"format"`
	Source string `json:"source"` // an https URL, or an absolute path
}

// IsListURL reports whether the source of a list is meant to be a URL.
func IsListURL(source string) bool { return strings.Contains(source, "://") }

// A listURL is where lists are published: a directory, and the name of the list in it.
type listURL struct {
	dir  string // ends with "/"
	name string
}

func (u listURL) String() string {
	if u.name == ListFile {
		return u.dir
	}
	return u.file(u.name)
}

// file is the URL of a file beside the list.
func (u listURL) file(name string) string { return u.dir + url.PathEscape(name) }

// parseListURL reads the URL of a directory, or of a list in one: a name that ends with
// ".json". Files are fetched beside the list, so there is no query. The error continues a
// sentence that begins with the URL.
func parseListURL(text string) (listURL, error) {
	u, err := url.Parse(text)
	switch {
	case len(text) > maxSourceURL:
		return listURL{}, fmt.Errorf("has more than %d bytes", maxSourceURL)
	case err != nil || u.Hostname() == "" || u.Opaque != "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return listURL{}, errors.New("is no valid URL")
	case u.Scheme != "https":
		return listURL{}, fmt.Errorf("has the scheme %q; lists are fetched over https only", u.Scheme)
	case u.User != nil:
		return listURL{}, errors.New("holds a user name, which is never sent; signatures say whether a list counts, so it may be public")
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(text, "#"):
		return listURL{}, errors.New("holds a query or a fragment, and names no directory")
	}
	at := listURL{name: ListFile}
	way := u.EscapedPath()
	if base := way[strings.LastIndexByte(way, '/')+1:]; strings.HasSuffix(base, ".json") {
		if at.name, err = url.PathUnescape(base); err != nil || strings.Contains(at.name, "/") {
			return listURL{}, errors.New("is no valid URL")
		}
		way = strings.TrimSuffix(way, base)
	}
	if !strings.HasSuffix(way, "/") {
		way += "/"
	}
	at.dir = "https://" + strings.ToLower(u.Host) + way
	return at, nil
}

// CheckListURL returns nil where lists can be fetched from a URL. The error continues a
// sentence that begins with the URL.
func CheckListURL(text string) error {
	_, err := parseListURL(text)
	return err
}

// ListSource returns where the lists of an issuer that is followed come from, as the user
// said when one was adopted: an https URL or an absolute path. Where nobody remembers it is
// "".
func (h *Home) ListSource(issuer string) (string, error) {
	raw, err := h.readListFile(issuer, sourceFile, maxSourceBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var f keptSource
	if err := ijson.Unmarshal(raw, &f); err != nil {
		return "", h.malformedList(issuer, sourceFile, err)
	}
	if f.Format != sourceVersion {
		return "", h.malformedList(issuer, sourceFile, fmt.Errorf("has format %d; this program knows %d", f.Format, sourceVersion))
	}
	if IsListURL(f.Source) {
		if err := CheckListURL(f.Source); err != nil {
			return "", h.malformedList(issuer, sourceFile, fmt.Errorf("%q %w", f.Source, err))
		}
	} else if !filepath.IsAbs(f.Source) {
		return "", h.malformedList(issuer, sourceFile, fmt.Errorf("%q is neither a URL nor an absolute path", f.Source))
	}
	return f.Source, nil
}

func encodeSource(source string) ([]byte, error) {
	raw, err := json.Marshal(keptSource{Format: sourceVersion, Source: source})
	return append(raw, '\n'), err
}
