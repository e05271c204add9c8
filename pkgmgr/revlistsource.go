package pkgmgr

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/switchyard-plugins/switchyard/pkgmgr/project"
	"github.com/switchyard-plugins/switchyard/schemas/ijson"
)

// sourceFile remembers beside an issuer's list where the user said that it comes from.
const (
	sourceFile     = "source.json"
	sourceVersion  = 1
	maxSourceBytes = 64 << 10
)

// keptSource is the content of sourceFile.
type keptSource struct {
	Format int    `json:"format"`
	Source string `json:"source"` // an https URL, or an absolute path
}

// IsListURL reports whether the source of a list is meant to be a URL.
func IsListURL(source string) bool { return strings.Contains(source, "://") }

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
		if _, err := project.ParseListURL(f.Source); err != nil {
			return "", h.malformedList(issuer, sourceFile, fmt.Errorf("\"%s\" %w", f.Source, err))
		}
	} else if !filepath.IsAbs(f.Source) {
		return "", h.malformedList(issuer, sourceFile, fmt.Errorf("\"%s\" is neither a URL nor an absolute path", f.Source))
	}
	return f.Source, nil
}

func encodeSource(source string) ([]byte, error) {
	raw, err := json.Marshal(keptSource{Format: sourceVersion, Source: source})
	return append(raw, '\n'), err
}
