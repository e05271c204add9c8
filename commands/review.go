package commands

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

type reviewData struct {
	ID                  string        `json:"id" doc:"The plugin's id."`
	Name                string        `json:"name" doc:"The name that the plugin gives itself."`
	Version             string        `json:"version" doc:"The package's version."`
	Status              string        `json:"status" doc:"Where it stands; empty for an archive that is not installed."`
	Package             digest.Digest `json:"package" doc:"The digest over every file: what trust records."`
	Fingerprint         digest.Digest `json:"fingerprint" doc:"The digest of manifest and executable alone."`
	FingerprintSuffices bool          `json:"fingerprintSuffices" doc:"Whether the package has no other files, so that the fingerprint covers it whole."`
	Manifest            digest.Digest `json:"manifest" doc:"The manifest digest."`
	Archive             digest.Digest `json:"archive" doc:"The archive's digest, empty where it is not known."`
	Protocol            string        `json:"protocol" doc:"The protocol that the plugin speaks."`
	Arguments           []string      `json:"arguments" doc:"The exact argument array, the executable first."`
	ExecutableKind      string        `json:"executableKind" doc:"What the executable is."`
	Capabilities        []string      `json:"capabilities" doc:"What the plugin can do when asked."`
	Scopes              []scopeData   `json:"scopes" doc:"What it asks for, in plain words."`
	Files               int           `json:"files" doc:"The number of files."`
	Bytes               int64         `json:"bytes" doc:"Their size together."`
	OtherExecutables    []string      `json:"otherExecutables" doc:"Further files with an execute bit."`
	Signature           string        `json:"signature" doc:"What is known about signatures."`
	Signers             []signerData  `json:"signers" doc:"Who signed, as the bundles prove it, whether the policy names them or not."`
	Policy              []ruleData    `json:"policy" doc:"The rules of the policy that keep the package from being trusted, or warn."`
	SBOM                string        `json:"sbom" doc:"The path of an SBOM in the package, empty where there is none."`
	SBOMVerdict         string        `json:"sbomVerdict" doc:"What came of comparing it with the package's files." enum:"verified|absent|skipped|failed"`
	SBOMProblems        []string      `json:"sbomProblems" doc:"Why it is refused or was not checked, or what a valid one leaves open."`
	Components          []component   `json:"components" doc:"What the SBOM says that the package is made of."`
	StatedLicences      []string      `json:"statedLicences" doc:"Every licence expression in the SBOM."`
	Licences            []string      `json:"licences" doc:"Files that look like licences."`
	Network             string        `json:"network" doc:"What is known about network use."`
	DataClasses         string        `json:"dataClasses" doc:"What is known about the data it handles."`
	Set                 *settingsData `json:"set" doc:"What is set for it, private values masked, or null."`
	Session             *sessionData  `json:"session" doc:"What only a session package's manifest says, or null."`
	Boundary            string        `json:"boundary" doc:"What trust means on this operating system."`
	Source              string        `json:"source" doc:"Where it was installed from, empty where that is not known."`
	InstalledAt         time.Time     `json:"installedAt,omitzero" doc:"When it was installed."`
	Where               string        `json:"where" doc:"The directory or archive that was read."`
	Revocation          *denialData   `json:"revocation" doc:"What denies the package, or null."`
	Change              *changeData   `json:"change" doc:"The difference to the version trusted last, or null."`
	Next                string        `json:"next" doc:"The next command to type, empty where there is none."`
}

type scopeData struct {
	Scope   string `json:"scope" doc:"The scope's name."`
	Meaning string `json:"meaning" doc:"What granting it allows."`
	Granted bool   `json:"granted" doc:"Whether it is granted now."`

	Required bool     `json:"required" doc:"Whether the plugin cannot be enabled without it."`
	Offered  bool     `json:"offered" doc:"Whether this host has a meaning for it; what it does not offer cannot be granted."`
	Reasons  []string `json:"reasons" doc:"What the plugin says it is for."`
}

type changeData struct {
	From           digest.Digest  `json:"from" doc:"The package digest that was trusted last."`
	Version        string         `json:"version" doc:"Its version."`
	TrustedAt      time.Time      `json:"trustedAt" doc:"When it was trusted."`
	Same           bool           `json:"same" doc:"Whether it is this very package."`
	Members        []memberChange `json:"members" doc:"Manifest members that differ."`
	Files          []fileChange   `json:"files" doc:"Files that differ."`
	FilesUnknown   bool           `json:"filesUnknown" doc:"Whether the old files are gone, so that they could not be compared."`
	FilesWhy       string         `json:"filesWhy" doc:"Why they could not be compared, empty where they were."`
	ScopesAdded    []string       `json:"scopesAdded" doc:"Scopes that are asked for now and were not."`
	ScopesDropped  []string       `json:"scopesDropped" doc:"Scopes that were asked for and are not any more."`
	VersionLowered bool           `json:"versionLowered" doc:"Whether the version is lower than the trusted one."`
}

type memberChange struct {
	Member string `json:"member" doc:"The manifest member."`
	Before string `json:"before" doc:"Its value in the trusted version."`
	Now    string `json:"now" doc:"Its value here."`
}

type fileChange struct {
	Path string `json:"path" doc:"The file's path in the package."`
	Kind string `json:"kind" doc:"What happened to it." enum:"added|removed|changed"`
}

// What a call-protocol manifest cannot say.
const (
	networkUnknown = "not declared: nothing keeps the plugin from opening connections"
	classesUnknown = "not declared: it sees what you hand to it, and whatever you can read"
)

func reviewCommand(in *invocation) *cli.Command {
	return &cli.Command{
		ArgsUsage: "NAME|ARCHIVE|DIR",
		Description: "Shows what a person should know before trusting a package: who it says it is, the digests that trust is bound to, " +
			"exactly what would be started, what it asks for in plain words, what trust means on this system, and what " +
			"changed since the version that was trusted last. Nothing of the package is executed.\n\n" +
			"An argument with a path separator, or that names an archive, is read from there and need not be installed.",
		UsageText: "switchyard review repo-facts\nswitchyard review dist/repo-facts-1.0.0.tar.zst",
		Action: func(c *cli.Context) error {
			subject, err := in.oneArgument(c)
			if err != nil {
				return err
			}
			r, err := in.review(subject)
			if err != nil {
				return err
			}
			data := in.newReviewData(subject, r)
			in.show(data, func(p *page) { p.review(data) })
			return nil
		},
	}
}

// review reads an installed package or, where subject names one, a file or
// directory.
func (in *invocation) review(subject string) (*pkgmgr.Review, error) {
	h, lock, err := in.site()
	if err != nil {
		return nil, err
	}
	if isPath(subject) {
		return h.ReviewArchive(in.context(), subject)
	}
	ref, err := in.ref(subject)
	if err != nil {
		return nil, err
	}
	return h.Review(in.context(), ref, lock)
}

// isPath tells a file or directory from an installed plugin's name: by a
// separator, by an archive's ending, or because it is no plugin name at all but
// exists.
func isPath(s string) bool {
	if strings.ContainsRune(s, '/') || strings.ContainsRune(s, os.PathSeparator) || s == "." || s == ".." {
		return true
	}
	for _, ending := range []string{".tar", ".tar.gz", ".tgz", ".tar.zst", ".zip"} {
		if strings.HasSuffix(s, ending) {
			return true
		}
	}
	if _, err := pkgmgr.ParseRef(s); err == nil {
		return false
	}
	_, err := os.Lstat(s)
	return err == nil
}

func (in *invocation) newReviewData(subject string, r *pkgmgr.Review) reviewData {
	m := r.Manifest
	d := reviewData{
		ID: m.ID, Name: m.Name, Version: m.Version, Status: string(r.Status),
		Package: r.Package, Fingerprint: r.Fingerprint, FingerprintSuffices: r.FingerprintSuffices,
		Manifest: r.ManifestDigest, Archive: r.Archive, Protocol: m.ProtocolVersion,
		Arguments: append([]string{m.Executable}, m.Arguments...), ExecutableKind: r.ExecutableKind,
		Capabilities: words(m.Capabilities), Files: r.Files, Bytes: r.Bytes, OtherExecutables: r.ScriptsAndPrograms,
		Signature: r.Signature, Signers: newSigners(r.Signers), Policy: newRuleData(append(r.Policy.Failed(), r.Policy.Warned()...)), SBOM: r.SBOM, SBOMVerdict: string(r.SBOMCheck.Verdict()), SBOMProblems: r.SBOMCheck.Problems(), Licences: r.LicenceFiles, Network: networkUnknown, DataClasses: classesUnknown,
		Boundary: pkgmgr.Boundary, Source: r.Source, InstalledAt: r.InstalledAt, Where: r.Where,
		Next: in.afterReview(subject, r),
	}
	if c := r.SBOMCheck; c.Verdict() == pkgmgr.Verified {
		for _, one := range c.Facts.Components {
			d.Components = append(d.Components, component(one))
		}
		d.StatedLicences = c.Facts.Licences
	}
	if d.Session = newSessionData(m); d.Session != nil {
		d.Network, d.DataClasses = d.Session.network(), d.Session.classes()
		if r.Status != "" && d.Session.Settings != "" {
			d.Set = in.settingsIn(pkgmgr.Ref{ID: m.ID, Digest: r.Package})
		}
	}
	d.Scopes = newScopes(&m, words(r.Granted))
	if r.Denial != nil {
		denial := newDenialData(*r.Denial)
		d.Revocation = &denial
	}
	if c := r.Change; c != nil {
		change := &changeData{From: c.From, Version: c.Version, TrustedAt: c.TrustedAt, Same: c.SameDigest,
			FilesUnknown: c.FilesUnknown, FilesWhy: c.FilesWhy, ScopesAdded: words(c.ScopesAdded), ScopesDropped: words(c.ScopesDropped), VersionLowered: c.VersionLowered}
		for _, m := range c.Members {
			change.Members = append(change.Members, memberChange(m))
		}
		for _, f := range c.Files {
			change.Files = append(change.Files, fileChange(f))
		}
		d.Change = change
	}
	return d
}

// newScopes lists what a package asks for: what can be granted first.
func newScopes(m *pkgmgr.Manifest, granted []string) (list []scopeData) {
	required, unoffered := m.Required(), m.Unoffered()
	for _, s := range slices.Concat(m.RequestedScopes, unoffered) {
		d := scopeData{Scope: string(s), Meaning: m.Meaning(s), Granted: slices.Contains(granted, string(s)),
			Required: slices.Contains(required, s), Offered: !slices.Contains(unoffered, s)}
		if m.Session != nil {
			for _, p := range m.Session.Permissions {
				if string(p.Scope) == d.Scope && p.Justification != "" {
					d.Reasons = append(d.Reasons, p.Justification)
				}
			}
		}
		list = append(list, d)
	}
	return list
}

// afterReview is the command that follows from where the package stands.
func (in *invocation) afterReview(subject string, r *pkgmgr.Review) string {
	switch r.Status {
	case "":
		return in.next("install", subject)
	case pkgmgr.StatusUntrusted, pkgmgr.StatusChanged:
		return in.next("trust", in.subjectOr(r.Manifest.ID), "--fingerprint", string(r.Package))
	case pkgmgr.StatusTrusted:
		return in.enableCommandLine(in.subjectOr(r.Manifest.ID), r.Manifest.RequestedScopes)
	case pkgmgr.StatusEnabled:
		name, lock := in.subjectOr(r.Manifest.ID), in.lockOrNone()
		if ref, err := pkgmgr.ParseRef(name); err == nil {
			if g := in.grantsOf(ref, lock); g != nil {
				return in.afterEnabled(lock, r.Manifest.ID, name, g)
			}
		}
		return in.next("run", name, "health")
	case pkgmgr.StatusRevoked:
		if r.Denial != nil {
			return in.next("show", r.Manifest.ID)
		}
	}
	return ""
}

// enableCommandLine is the command that grants scopes, one by one.
func (in *invocation) enableCommandLine(name string, scopes []manifest.Scope) string {
	words := []string{"enable", name}
	for _, s := range scopes {
		words = append(words, "--scope", string(s))
	}
	return in.next(words...)
}

func (p *page) review(d reviewData) {
	status := d.Status
	if status == "" {
		status = "not installed"
	}
	p.line("%s %s  %s", p.style.Mark(render.Strong, d.ID), d.Version, p.style.Mark(statusMark(d.Status), status))
	p.field("name", "%s", d.Name)
	if d.Revocation != nil {
		p.field("revoked", "%s: %s", p.style.Mark(render.Bad, d.Revocation.Subject), d.Revocation.Reason)
	}
	p.field("package", "%s", d.Package)
	p.field("fingerprint", "%s", d.Fingerprint.Hex())
	if d.FingerprintSuffices {
		p.field("", "covers the whole package: it has no other files")
	} else {
		p.field("", "covers plugin.json and the executable only; the package digest covers all %d files", d.Files)
	}
	p.field("manifest", "%s", d.Manifest)
	if d.Archive != "" {
		p.field("archive", "%s", d.Archive)
	}
	p.field("read from", "%s", d.Where)
	if d.Source != "" && d.Source != d.Where {
		p.field("installed from", "%s", d.Source)
	}
	p.line("")
	p.title("What would be started")
	p.field("protocol", "%s", d.Protocol)
	p.exact("arguments", argumentArray(d.Arguments))
	p.field("executable", "%s", d.ExecutableKind)
	p.field("files", "%d, %s", d.Files, byteSize(d.Bytes))
	if len(d.OtherExecutables) > 0 {
		p.field("also executable", "%s", strings.Join(d.OtherExecutables, ", "))
	}
	if d.Session != nil {
		p.session(d.Session)
		if d.Set != nil {
			p.field("is set", "%s", d.Set.set())
		}
		p.line("")
		p.title("What it can be asked for")
		p.operations(d.Session.Operations)
	} else {
		p.field("can", "%s", orNone(d.Capabilities))
	}
	p.line("")
	p.title("What it asks for")
	if len(d.Scopes) == 0 {
		p.line("  nothing")
	}
	for _, s := range d.Scopes {
		mark := "not granted"
		switch {
		case !s.Offered:
			mark = "not offered by this host"
		case s.Granted:
			mark = "granted"
		}
		if s.Required {
			mark += ", required"
		}
		p.line("  %s  (%s)", s.Scope, mark)
		p.prose(4, s.Meaning)
		for _, reason := range s.Reasons {
			p.prose(4, "It says: "+reason)
		}
	}
	p.line("")
	p.title("What vouches for it")
	p.field("signature", "%s", d.Signature)
	for _, s := range d.Signers {
		p.field("signed by", "%s", s)
	}
	for _, r := range d.Policy {
		p.field("policy", "%s: %s", r.Rule, r.Why)
	}
	p.sbom(d)
	p.field("licences", "%s", orNone(d.Licences))
	p.field("network", "%s", d.Network)
	p.field("data classes", "%s", d.DataClasses)
	if d.Change != nil {
		p.line("")
		p.change(*d.Change)
	}
	p.line("")
	p.title("What trust means")
	p.prose(2, d.Boundary)
	if d.Next != "" {
		p.next(d.Next)
	}
}

func (p *page) change(c changeData) {
	if c.Same {
		p.title("Nothing changed since it was trusted")
		p.field("trusted", "%s", render.Safe(p.moment(c.TrustedAt)))
		return
	}
	p.title(fmt.Sprintf("What changed since %s, trusted %s", c.Version, p.moment(c.TrustedAt)))
	p.field("was", "%s", c.From)
	if c.VersionLowered {
		p.field("version", "%s", p.style.Mark(render.Warn, "lower than the trusted one"))
	}
	for _, s := range c.ScopesAdded {
		p.field("scope", "%s", p.style.Mark(render.Warn, "+ "+s))
	}
	for _, s := range c.ScopesDropped {
		p.field("scope", "- %s", s)
	}
	for _, m := range c.Members {
		p.field(m.Member, "%s -> %s", m.Before, m.Now)
	}
	if c.FilesUnknown {
		p.field("files", "not compared with the trusted version's: %s", c.FilesWhy)
	}
	const most = 40
	for i, f := range c.Files {
		if i == most {
			p.field("", "and %s (--json lists all)", count(len(c.Files)-most, "more file"))
			break
		}
		p.field(f.Kind, "%s", f.Path)
	}
}

// argumentArray spells arguments as a JSON array, so that every boundary and
// every character shows.
func argumentArray(args []string) string {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, a := range args {
		if i > 0 {
			b.WriteString(", ")
		}
		out, err := encode(a)
		if err != nil {
			fmt.Fprintf(&b, "%q", a)
			continue
		}
		b.Write(bytes.TrimRight(out, "\n"))
	}
	b.WriteByte(']')
	return b.String()
}
