package verify

import (
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// An SBOMRequest asks what an SPDX document says.
type SBOMRequest struct {
	Document []byte `json:"document"`
}

// SBOMFacts are what a valid SPDX document says. Whether it is true of a package's
// files is for others to compare.
type SBOMFacts struct {
	Document   digest.Digest `json:"document"` // of its bytes
	Version    string        `json:"version"`  // of SPDX: "2.2", "2.3" or "3.0.1"
	Created    time.Time     `json:"created"`
	Files      []SBOMFile    `json:"files"` // sorted by path, each once
	Components []Component   `json:"components"`
	// Licences are the expressions that are stated of components and files, sorted, each
	// once; with "NOASSERTION" where a component has none.
	Licences []string `json:"licences"`
	Problems []string `json:"problems"` // what the document leaves open
}

// An SBOMFile is a file that an SPDX document lists.
type SBOMFile struct {
	Path   string `json:"path"`   // below the package's root, separated by "/"
	SHA256 string `json:"sha256"` // hex; "" where the document states none
}

// A Component is a package in the sense of SPDX.
type Component struct {
	Name      string `json:"name"`
	Version   string `json:"version"`
	Declared  string `json:"declared"`  // licence expression, "" where none is stated
	Concluded string `json:"concluded"` // licence expression, "" where none is stated
}
