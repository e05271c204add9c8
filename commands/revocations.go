package commands

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/lockfile/textfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/project/versionrange"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
	"github.com/switchyard-plugins/switchyard/verify/revlist"
)

// listedData is the entry of a signed list.
type listedData struct {
	Issuer      string `json:"issuer" doc:"Whose list it is."`
	Version     int64  `json:"version" doc:"The version of the list."`
	Subject     string `json:"subject" doc:"What the entry is about."`
	Action      string `json:"action" doc:"What it demands." enum:"block|warn"`
	Reason      string `json:"reason" doc:"Why." enum:"compromised|malicious|superseded|vulnerable|withdrawn"`
	Text        string `json:"text" doc:"The issuer's words, or empty."`
	Advisory    string `json:"advisory" doc:"Where to read more, or empty."`
	Replacement string `json:"replacement" doc:"What to use instead, or empty."`
	Dissent     string `json:"dissent" doc:"Why the block is not followed on this machine, or empty."`
}

func newListedData(l pkgmgr.Listed) listedData {
	e := l.Entry
	d := listedData{Issuer: l.Issuer, Version: int64(l.Version), Subject: l.Subject(), Action: string(e.Action), Reason: string(e.Reason),
		Text: e.Text, Advisory: e.Advisory, Replacement: e.Replacement}
	if l.Dissent != nil {
		d.Dissent = l.Dissent.Reason
	}
	return d
}

// day is the default validity of a list in days, and of a root.
const (
	day          = 24 * time.Hour
	listValidity = 7 * day
	rootValidity = 365 * day
)

// versionRanges reads the ranges of lists that are edited here.
func versionRanges(text string) (func(string) bool, error) {
	r, err := versionrange.Parse(text)
	if err != nil {
		return nil, err
	}
	return r.Covers, nil
}

// identityIssuer stands between an identity and who vouches for it.
const identityIssuer = ",issuer="

// signers reads the signers that the values of a flag name, and returns the text of the
// public keys that were given as files.
func (in *invocation) signers(flag string, values []string) (signers []verify.Signer, keys []string, err error) {
	for _, value := range values {
		signer, key, err := in.signer(flag, value)
		if err != nil {
			return nil, nil, err
		}
		signers = append(signers, signer)
		if key != "" {
			keys = append(keys, key)
		}
	}
	return signers, keys, nil
}

// signer reads a signer: IDENTITY,issuer=URL, a key's id, or the file of a public key,
// whose text is returned as well.
func (in *invocation) signer(flag, value string) (signer verify.Signer, key string, err error) {
	if i := strings.LastIndex(value, identityIssuer); i >= 0 {
		signer = verify.Signer{Identity: value[:i], Issuer: value[i+len(identityIssuer):]}
		if signer.Identity == "" || signer.Issuer == "" {
			return signer, "", in.usage("--%s: an identity is IDENTITY%sURL, not %q", flag, identityIssuer, value)
		}
		return signer, "", nil
	}
	if strings.HasPrefix(value, "sha256:") {
		if !digest.IsCanonical(value) {
			return signer, "", in.usage("--%s: %q is no key id", flag, value)
		}
		return verify.Signer{Key: value}, "", nil
	}
	text, err := readGiven(value, maxKeyFile)
	if err != nil {
		return signer, "", fmt.Errorf("--%s: %w", flag, err)
	}
	id, err := verify.KeyID(string(text))
	if err != nil {
		return signer, "", in.usage("--%s: %s %v", flag, value, err)
	}
	return verify.Signer{Key: id}, string(text), nil
}

// listPath is the list that an argument names: a file, or a directory with one.
func listPath(argument string) string {
	if info, err := os.Stat(argument); err == nil && info.IsDir() {
		return filepath.Join(argument, pkgmgr.ListFile)
	}
	return argument
}

// readList reads a list that is to be edited.
func readList(path string) (*revlist.List, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, missingFile(path, err)
	}
	defer f.Close()
	l, _, err := revlist.Parse(f, 0, versionRanges)
	return l, err
}

// writeList replaces a list in one step. Signatures of what was there before are
// removed: they are over other bytes.
func writeList(path string, l *revlist.List) error {
	var text bytes.Buffer
	if err := revlist.Write(&text, l, versionRanges); err != nil {
		return err
	}
	if err := textfile.Write(path, text.Bytes()); err != nil {
		return err
	}
	if err := os.Remove(path + pkgmgr.BundlesSuffix); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// validityFlag says how long a list that is issued now is valid.
func validityFlag(validity *time.Duration) cli.Flag {
	return &cli.DurationFlag{Name: "validity", Value: listValidity, Destination: validity, Usage: "a newer list will be there after `TIME` at the latest"}
}

// reissue changes the list that an argument names, and writes it as the next version,
// issued now.
func (in *invocation) reissue(argument string, validity time.Duration, change func(*revlist.List) (*revlist.List, error)) (path string, list *revlist.List, err error) {
	path = listPath(argument)
	if validity < time.Second {
		return path, nil, in.usage("--validity says how long the list is valid, as 168h")
	}
	if list, err = readList(path); err != nil {
		return path, nil, err
	}
	if list, err = change(list); err != nil {
		return path, nil, err
	}
	if list, err = list.Bump(in.env.Now(), validity); err != nil {
		return path, nil, err
	}
	return path, list, writeList(path, list)
}

// reissued tells of a list that was written and is to be signed.
func (in *invocation) reissued(p *page, path string, list *revlist.List) {
	p.field("entries", "%d", len(list.Entries))
	p.field("expires", "%s", p.moment(list.ExpiresAt))
	p.nextAll(in.signListCommands(path))
}

type listRefusedDetails struct {
	Issuer string        `json:"issuer"`
	Fault  revlist.Code  `json:"fault,omitzero"`
	Reason string        `json:"reason"`
	Root   digest.Digest `json:"root,omitzero"`
	Causes []string      `json:"causes,omitzero"`
}

type rootFaultDetails struct {
	File   string `json:"file"`
	Reason string `json:"reason"`
}

// classifyLists knows what can be wrong with revocation lists.
func (in *invocation) classifyLists(err error, f *failure) bool {
	var (
		refused *pkgmgr.ListRefused
		damaged *pkgmgr.ListsDamaged
		stale   *pkgmgr.ListsNotFresh
		root    *pkgmgr.RootFault
		fault   *revlist.Error
		url     *pkgmgr.BadListURL
	)
	switch {
	case errors.As(err, &url):
		f.exit, f.code, f.hint = exitUsage, "usage", in.next("help", "revocations", "update")
	case errors.As(err, &refused):
		f.exit, f.code, f.message = exitEvidence, refused.Code, refused.Error()
		causes := listCauses(refused.Code)
		f.details = listRefusedDetails{refused.Issuer, refused.Fault, refused.Reason, refused.Root, causes}
		f.block = &block{title: "REVOCATION LIST REFUSED", causes: causes, facts: [][2]string{{"issuer", refused.Issuer}, {"reason", refused.Reason}}}
		f.hint = in.next("revocations", "list")
		switch {
		case refused.Code == pkgmgr.CodeRootUntrusted, refused.Code == pkgmgr.CodeNotFollowed && refused.Root != "":
			f.block.facts = append(f.block.facts, [2]string{"root", string(refused.Root)})
			f.hint = in.next("revocations", "update", refused.Source, "--trust-root", string(refused.Root))
		case refused.Code == pkgmgr.CodeListSigners, refused.Code == pkgmgr.CodeRootSigners:
			f.hint = in.tooFewHint(refused)
		case refused.Code == pkgmgr.CodeNoSource:
			f.hint = in.updateHint(refused.Issuer)
		case refused.Issuer == "":
			f.block.facts = f.block.facts[1:]
		}
	case errors.As(err, &damaged):
		f.exit, f.code, f.hint = exitIntegrity, "list.damaged", in.updateHint(damaged.Issuer)
	case errors.As(err, &stale):
		f.exit, f.code, f.hint = exitEvidence, "policy.list_stale", in.freshListsHint()
	case errors.As(err, &root):
		f.exit, f.code, f.details = exitEvidence, root.Code, rootFaultDetails{root.Path, root.Reason}
		switch root.Code {
		case pkgmgr.CodeRootSigners:
			f.hint = in.signRootHint(root.Path)
		case pkgmgr.ListCode(revlist.RootExpired):
			f.hint = in.again("--root-validity", "8760h")
		default:
			f.hint = in.next("help", "revocations", "rotate")
		}
	case errors.As(err, &fault):
		f.exit, f.code = exitIntegrity, pkgmgr.ListCode(fault.Code)
		f.details = listRefusedDetails{Fault: fault.Code, Reason: fault.Error()}
		if fault.Offset < 0 { // not of bytes: of what was asked for
			f.exit, f.code, f.hint, f.details = exitUsage, "usage", in.next(helpOn(in.commandName())...), nil
		}
	default:
		return false
	}
	return true
}

// listCauses are the likely causes of a refusal.
func listCauses(code string) []string {
	switch code {
	case string(revlist.Equivocation.Code()):
		return []string{
			"the issuer, or a thief of its list key, says different things to different machines: ask the issuer which one is right",
			"the list was changed and signed again under its old version: the next one is made with revocations add or renew",
		}
	case string(revlist.Rollback.Code()):
		return []string{
			"the source is an old copy: get the list anew",
			"somebody withholds newer denials from this machine, or holds a list key",
		}
	case string(revlist.Future.Code()):
		return []string{"the clock of this machine, or of the issuer, is wrong"}
	case pkgmgr.CodeListSigners, pkgmgr.CodeRootSigners:
		return []string{
			"a signature, or the public key that proves it, is missing: NAME.pub belongs beside the list or into the configuration directory's keys/",
			"somebody signed who may not, or the file was changed after it was signed",
		}
	case pkgmgr.CodeRootUntrusted:
		return []string{"no list of this issuer was followed here before: compare the root's digest with what the issuer says by another way, then accept it"}
	case pkgmgr.CodeNotFollowed:
		return []string{"compare the root's digest with what the issuer says by another way, then follow the issuer yourself, or leave the project's source alone"}
	case pkgmgr.CodeNoSource:
		return []string{"the list was adopted by an earlier version of this program: name its source once"}
	case pkgmgr.CodeRootMissing:
		return []string{"the list was copied without " + pkgmgr.RootFile}
	case string(revlist.RootVersion):
		return []string{
			"a rotation between was left out: its root belongs beside the others, as root.<version>.json",
			"the source is an old copy, or somebody wants an old root back",
		}
	}
	return []string{"the file was changed, cut off or not made by switchyard revocations"}
}

// listedFailure tells of a package that a signed list revokes.
func (in *invocation) listedFailure(revoked *pkgmgr.Revoked, f *failure) {
	d := newListedData(*revoked.Denial.List)
	causes := []string{
		"the issuer " + d.Issuer + ", whose list is followed here, revoked it; no trust, pin or lock overrides that",
	}
	if d.Replacement != "" {
		causes = append(causes, "the issuer says what to use instead: "+d.Replacement)
	}
	f.hint = in.next("revocations", "affected")
	f.details = revokedDetails{ID: revoked.ID, Version: revoked.Version, Package: revoked.Package, Denied: d.Subject,
		Reason: revoked.Denial.Reason, Causes: causes, List: &d}
	f.block = &block{title: "REVOKED", causes: causes, facts: [][2]string{
		{"package", revoked.ID + " " + revoked.Version},
		{"digest", string(revoked.Package)},
		{"denied", d.Subject},
		{"by", fmt.Sprintf("%s, list %d", d.Issuer, d.Version)},
		{"reason", revoked.Denial.Reason},
	}}
	if d.Advisory != "" {
		f.block.facts = append(f.block.facts, [2]string{"advisory", d.Advisory})
	}
	if d.Replacement != "" {
		f.block.facts = append(f.block.facts, [2]string{"replacement", d.Replacement})
	}
}
