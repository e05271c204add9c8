package project

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// MaxListURL bounds the URL of a revocation list, in bytes.
const MaxListURL = 1 << 10

// listName is what a list is called where a URL names a directory only.
const listName = "list.json"

// A ListURL is where an issuer's revocation list is published: a directory behind https,
// and the name of the list in it.
type ListURL struct {
	dir  string // ends with "/"
	Name string
}

// String is the URL in its one spelling: of the directory where the list has its usual
// name, else of the list.
func (u ListURL) String() string {
	if u.Name == listName {
		return u.dir
	}
	return u.File(u.Name)
}

// File is the URL of a file beside the list.
func (u ListURL) File(name string) string { return u.dir + url.PathEscape(name) }

// ParseListURL reads the URL of a directory, or of a list in one: a name that ends with
// ".json". Other files are fetched beside the list, so there is no query. The error
// continues a sentence that begins with the URL.
func ParseListURL(text string) (ListURL, error) {
	u, err := url.Parse(text)
	switch {
	case len(text) > MaxListURL:
		return ListURL{}, fmt.Errorf("has more than %d bytes", MaxListURL)
	case err != nil || u.Hostname() == "" || u.Opaque != "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return ListURL{}, errors.New("is not a valid URL")
	case u.Scheme != "https":
		return ListURL{}, fmt.Errorf("has the scheme \"%s\"; revocation lists are fetched over https only", u.Scheme)
	case u.User != nil:
		return ListURL{}, errors.New("holds a user name; none is ever sent")
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(text, "#"):
		return ListURL{}, errors.New("holds a query or a fragment; it names a directory, or the .json file of a list")
	}
	at, way := ListURL{Name: listName}, u.EscapedPath()
	if base := way[strings.LastIndexByte(way, '/')+1:]; strings.HasSuffix(base, ".json") {
		if at.Name, err = url.PathUnescape(base); err != nil || strings.Contains(at.Name, "/") {
			return ListURL{}, errors.New("is not a valid URL")
		}
		way = strings.TrimSuffix(way, base)
	}
	if !strings.HasSuffix(way, "/") {
		way += "/"
	}
	at.dir = "https://" + strings.ToLower(u.Host) + way
	return at, nil
}
