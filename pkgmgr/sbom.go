package pkgmgr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/switchyard-plugins/switchyard/pkgmgr/archive"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
	"github.com/switchyard-plugins/switchyard/verify/policy"
)

// An SBOMCheck is what came of comparing a package with its own SBOM. Nil says that the
// package has none. Exactly one of Facts, Faults and Unchecked is set.
type SBOMCheck struct {
	Facts     *verify.SBOMFacts // of a document that is valid and true of the files that it lists
	Unlisted  []string          // files of the package that it does not list
	Faults    []string          // why it is refused
	Unchecked string            // why nobody checked it
}

// Verdict is Absent, Verified, Failed or Skipped.
func (c *SBOMCheck) Verdict() Verdict {
	switch {
	case c == nil:
		return Absent
	case c.Unchecked != "":
		return Skipped
	case c.Facts == nil || len(c.Faults) > 0:
		return Failed
	}
	return Verified
}

// Problems says what is wrong with the SBOM, or what a valid one leaves open.
func (c *SBOMCheck) Problems() []string {
	switch c.Verdict() {
	case Skipped:
		return []string{sbomFile + " is there, and was not checked: " + c.Unchecked}
	case Failed:
		return c.Faults
	case Verified:
		problems := slices.Clone(c.Facts.Problems)
		if len(c.Unlisted) > 0 {
			problems = append(problems, "it does not list "+firstOf(c.Unlisted))
		}
		return problems
	}
	return nil
}

// SBOMRefused says that a package holds an SBOM that is not valid, or not true of its
// files: no install accepts it, whatever a policy asks.
type SBOMRefused struct {
	Source string // the directory or archive, as it was named
	Faults []string
}

func (e *SBOMRefused) Error() string {
	return fmt.Sprintf("%s: %s is refused: %s", e.Source, sbomFile, strings.Join(e.Faults, "; "))
}

// refused is a *SBOMRefused where the SBOM of source failed, else nil.
func (c *SBOMCheck) refused(source string) error {
	if c.Verdict() != Failed {
		return nil
	}
	return &SBOMRefused{source, c.Faults}
}

// forPolicy is what the policy is told.
func (c *SBOMCheck) forPolicy() policy.SBOM {
	s := policy.SBOM{Problems: c.Problems()}
	switch c.Verdict() {
	case Absent:
		s.State = policy.SBOMAbsent
	case Skipped:
		s.State = policy.SBOMUnchecked
	case Verified:
		s.State, s.Licences = policy.SBOMPresent, c.Facts.Licences
	}
	return s
}

// firstOf names the first of many.
func firstOf(names []string) string {
	const most = 10
	text := strings.Join(names[:min(len(names), most)], ", ")
	if len(names) > most {
		text += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return text
}

// sbom compares the package at dir, whose files were just hashed, with the SBOM in it.
// Without a worker beside the program the SBOM stays unchecked, unless the policy asks
// for SBOMs or denies licences. The error says that nothing could be found out.
func (p *proving) sbom(ctx context.Context, dir string, files []digest.File) (*SBOMCheck, error) {
	at := slices.IndexFunc(files, func(f digest.File) bool { return f.Path == sbomFile })
	if at < 0 {
		return nil, nil
	}
	if p.home.assure == nil {
		return &SBOMCheck{Unchecked: errNoAssurance.Error()}, nil
	}
	worker, a, err := p.worker(ctx)
	var unusable *verify.Unusable
	if errors.As(err, &unusable) && a != nil && a.Policy.SBOM == policy.Allowed && len(a.Policy.DeniedLicences) == 0 {
		return &SBOMCheck{Unchecked: err.Error()}, nil
	}
	if err != nil {
		return nil, err
	}
	document, err := readSBOM(dir, files[at])
	if err != nil {
		return nil, err
	}
	if document == nil {
		return &SBOMCheck{Faults: []string{fmt.Sprintf("it has more than %d bytes", verify.MaxSBOM)}}, nil
	}
	facts, err := worker.SBOM(ctx, document)
	var refusal *verify.Refusal
	if errors.As(err, &refusal) {
		return &SBOMCheck{Faults: []string{string(refusal.Code) + ": " + refusal.Message}}, nil
	}
	if err != nil {
		return nil, err
	}
	return compareSBOM(facts, files), nil
}

// readSBOM reads the SBOM of the tree at dir, nil for one that is too large.
func readSBOM(dir string, want digest.File) ([]byte, error) {
	if want.Size > verify.MaxSBOM {
		return nil, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", sbomFile, err)
	}
	defer root.Close()
	f, err := root.Open(sbomFile)
	if err != nil {
		return nil, unreadable(dir, err)
	}
	defer f.Close()
	document, err := io.ReadAll(io.LimitReader(f, want.Size+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", sbomFile, err)
	}
	if digest.Of(document).Hex() != want.SHA256 {
		return nil, &Malformed{Where: dir, File: sbomFile, Err: errors.New("was changed while the package was read")}
	}
	return document, nil
}

// compareSBOM compares what an SBOM lists with a package's files: each that it lists must
// be there, with the checksum that it states.
func compareSBOM(facts *verify.SBOMFacts, files []digest.File) *SBOMCheck {
	there := make(map[string]string, len(files))
	for _, f := range files {
		there[f.Path] = f.SHA256
	}
	c := &SBOMCheck{}
	for _, f := range facts.Files {
		sum, ok := there[f.Path]
		switch {
		case f.Path == sbomFile:
			c.Faults = append(c.Faults, "it lists itself")
		case !ok:
			c.Faults = append(c.Faults, "it lists "+f.Path+", which is not in the package")
		case f.SHA256 != "" && f.SHA256 != sum:
			c.Faults = append(c.Faults, fmt.Sprintf("of %s it says sha256:%s, and that file has sha256:%s", f.Path, f.SHA256, sum))
		}
		delete(there, f.Path)
	}
	if len(c.Faults) > 0 {
		const most = 10
		if n := len(c.Faults); n > most {
			c.Faults = append(c.Faults[:most], fmt.Sprintf("%d more", n-most))
		}
		return c
	}
	delete(there, sbomFile)
	for p := range there {
		c.Unlisted = append(c.Unlisted, p)
	}
	slices.Sort(c.Unlisted)
	c.Facts = facts
	return c
}

// sbom checks the SBOM of the staged package.
func (s *staged) sbom(ctx context.Context, c *Contents) (*SBOMCheck, error) {
	return s.prove.sbom(ctx, s.join("tree"), c.Files)
}

// orUnchecked makes a check that could not be made one that was not made: a review tells
// why, and a person decides.
func orUnchecked(c *SBOMCheck, err error) *SBOMCheck {
	if err != nil {
		return &SBOMCheck{Unchecked: err.Error()}
	}
	return c
}

// provedInstalled proves what is kept of an installed package again, and compares its
// SBOM with its files.
func (h *Home) provedInstalled(ctx context.Context, in state.Install) (*Evidence, *SBOMCheck, error) {
	prove := &proving{home: h}
	defer prove.close()
	var evidence *Evidence
	if h.assure != nil {
		var err error
		if evidence, err = prove.again(ctx, in.Archive); err != nil {
			return nil, nil, err
		}
	}
	where := h.storePath(in.Package)
	if !exists(filepath.Join(where, sbomFile)) {
		return evidence, nil, nil
	}
	found, files, err := hashFiles(ctx, where, archive.HashDir)
	if err == nil && found != in.Package {
		err = &Integrity{What: "package digest", Expected: in.Package, Found: found, Where: where,
			Causes: []string{"its files are being changed at this moment"}}
	}
	if err != nil {
		return nil, nil, err
	}
	sbom, err := prove.sbom(ctx, where, files)
	return evidence, sbom, err
}

// tell says what an SBOM leaves open. A failed one is told by the policy, which refuses it.
func (c *SBOMCheck) tell(on Progress, name string) {
	if c.Verdict() == Failed {
		return
	}
	for _, problem := range c.Problems() {
		on.note("the SBOM of %s: %s", name, problem)
	}
}
