package commands

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
)

type trustedRootShowData struct {
	Source string `json:"source" doc:"Where it is: shipped with the program, configured, or a file that was named." enum:"shipped|configured|file"`
	Path   string `json:"path" doc:"Its file, empty for the one that is shipped."`
	trustedRootData
}

type trustedRootUpdateData struct {
	Path        string        `json:"path" doc:"The file that was written."`
	URL         string        `json:"url" doc:"The TUF repository."`
	Was         digest.Digest `json:"was" doc:"The digest of the one before, empty where there was none."`
	Unchanged   bool          `json:"unchanged" doc:"Whether it is the one that was there."`
	RootVersion int64         `json:"rootVersion" doc:"The version of the repository's root."`
	Version     int64         `json:"version" doc:"The version of the repository's targets."`
	ExpiresAt   time.Time     `json:"expiresAt" doc:"When the repository will have stated something newer at the latest."`
	trustedRootData
}

type trustedRootData struct {
	Digest      digest.Digest    `json:"digest" doc:"The trusted root's digest."`
	Authorities []trustedKeyData `json:"authorities" doc:"The certificate authorities."`
	Logs        []trustedKeyData `json:"logs" doc:"The transparency logs."`
	CTLogs      []trustedKeyData `json:"ctLogs" doc:"The logs of certificates."`
	Timestamps  []trustedKeyData `json:"timestamps" doc:"The timestamp authorities."`
}

type trustedKeyData struct {
	URL   string    `json:"url" doc:"Where it is reached."`
	Name  string    `json:"name" doc:"The subject of its certificate, or the log's id."`
	From  time.Time `json:"from,omitzero" doc:"Since when it counts."`
	Until time.Time `json:"until,omitzero" doc:"Until when it counts; absent where it still does."`
}

func newTrustedRootData(f *verify.TrustedRootFacts) trustedRootData {
	keys := func(list []verify.TrustedKey) []trustedKeyData {
		out := make([]trustedKeyData, len(list))
		for i, k := range list {
			out[i] = trustedKeyData(k)
		}
		return out
	}
	return trustedRootData{f.Digest, keys(f.Authorities), keys(f.Logs), keys(f.CTLogs), keys(f.Timestamps)}
}

func (p *page) trustedRoot(d trustedRootData) {
	p.field("digest", "%s", d.Digest)
	for _, one := range []struct {
		label string
		keys  []trustedKeyData
	}{{"authority", d.Authorities}, {"log", d.Logs}, {"certificate log", d.CTLogs}, {"timestamps", d.Timestamps}} {
		for _, k := range one.keys {
			until := "now"
			if !k.Until.IsZero() {
				until = k.Until.Format(time.DateOnly)
			}
			p.field(one.label, "%s, %s to %s (%s)", k.URL, k.From.Format(time.DateOnly), until, k.Name)
		}
	}
}

func trustedRootShowCommand(in *invocation) *cli.Command {
	return &cli.Command{
		ArgsUsage: "[FILE]",
		Description: "Says which authorities and logs a trusted root names: those that vouch for signatures under certificates. Without FILE it is the one that " +
			"counts here: trusted_root.json of the configuration directory, else the one that is shipped.",
		UsageText: "switchyard trusted-root show\nswitchyard trusted-root show trusted_root.json --json",
		Action: func(c *cli.Context) error {
			args, err := in.arguments(c, 0, 1)
			if err != nil {
				return err
			}
			data := trustedRootShowData{Source: "shipped"}
			var text []byte
			if len(args) == 1 {
				data.Source, data.Path = "file", args[0]
				if text, err = readGiven(args[0], verify.MaxTrustedRoot); err == nil && len(text) == 0 {
					err = fmt.Errorf("%s is empty", args[0])
				}
			} else {
				text, err = in.signersRoot("")
			}
			if err != nil {
				return err
			}
			if len(args) == 0 && text != nil {
				dir, err := pkgmgr.ConfigDir(in.getenv)
				if err != nil {
					return err
				}
				data.Source, data.Path = "configured", pkgmgr.TrustedRootPath(dir)
			}
			worker, err := in.worker()
			if err != nil {
				return err
			}
			defer worker.Close()
			facts, err := worker.TrustedRoot(in.context(), text)
			if err != nil && data.Path != "" {
				err = fmt.Errorf("%s: %w", data.Path, err)
			}
			if err != nil {
				return err
			}
			data.trustedRootData = newTrustedRootData(facts)
			in.show(data, func(p *page) {
				p.line("Trusted root, %s", p.style.Mark(render.Strong, data.Source))
				if data.Path != "" {
					p.field("file", "%s", data.Path)
				}
				p.trustedRoot(data.trustedRootData)
			})
			return nil
		},
	}
}

func trustedRootUpdateCommand(in *invocation) *cli.Command {
	var mirror, tufRoot, out string
	var replace bool
	return &cli.Command{
		Description: "Fetches the trusted root that a TUF repository names now, and puts it into the configuration directory as trusted_root.json, where " +
			"it takes the place of the one that is shipped. Nothing else ever fetches one. The first time the repository is known by its root: that of Sigstore's " +
			"public instance is shipped, that of another is named with --tuf-root and comes from its operator by a way that you trust. Every later root must be " +
			"signed by the one before; what is older than what was taken the last time, or expired, is refused, and the trusted root stays as it is. " +
			"What was proved is kept beside it, as trusted_root.json.tuf.\n\n" +
			"HTTPS_PROXY and NO_PROXY say how the server is reached, SSL_CERT_FILE names the authorities that vouch for it.",
		UsageText: "switchyard trusted-root update\nswitchyard trusted-root update --out trusted_root.json\n" +
			"switchyard trusted-root update --mirror https://tuf.example --tuf-root 1.json",
		Flags: flags{
			&cli.StringFlag{Name: "mirror", Destination: &mirror, Usage: "the TUF repository at `URL`; without it the one of the last time, else Sigstore's"},
			&cli.StringFlag{Name: "tuf-root", Destination: &tufRoot, Usage: "begin with the repository's root in `FILE`"},
			&cli.StringFlag{Name: "out", Destination: &out, Usage: "write `FILE` and FILE.tuf, not the configuration directory"},
			&cli.BoolFlag{Name: "replace", Destination: &replace, Usage: "also replace a trusted root that no update put there"},
		},
		Action: func(c *cli.Context) error {
			if err := in.noArguments(c); err != nil {
				return err
			}
			u := pkgmgr.TrustedRootUpdate{Path: out, URL: mirror, Replace: replace, Now: in.env.Now(), Progress: in.fetchingFile}
			if tufRoot != "" {
				var err error
				if u.TUFRoot, err = readTUFRoot(tufRoot); err != nil {
					return err
				}
			}
			if out == "" {
				dir, err := pkgmgr.ConfigDir(in.getenv)
				if err == nil {
					err = pkgmgr.CheckConfiguredRoot(dir)
				}
				if err != nil {
					return err
				}
				u.Path = pkgmgr.TrustedRootPath(dir)
			}
			data, err := in.updateTrustedRoot(u)
			if err != nil {
				return err
			}
			in.report(data, func(p *page) {
				verb := "Wrote the trusted root"
				if data.Unchanged {
					verb = "Already there: the trusted root"
				}
				p.line("%s %s", render.Safe(verb), p.style.Mark(render.Strong, data.Path))
				p.field("from", "%s", data.URL)
				p.field("version", "%d, under root %d", data.Version, data.RootVersion)
				p.field("stated until", "%s", p.moment(data.ExpiresAt))
				p.trustedRoot(data.trustedRootData)
			})
			return nil
		},
	}
}

// readTUFRoot reads the root that a repository is begun with.
func readTUFRoot(path string) ([]byte, error) {
	text, err := readUpTo(path, verify.MaxTUFRoot)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, &pkgmgr.NotFound{Kind: "file", Name: path}
	case err != nil:
		return nil, fmt.Errorf("--tuf-root: %w", err)
	case len(text) == 0:
		return nil, fmt.Errorf("--tuf-root: %s is empty", path)
	case len(text) > verify.MaxTUFRoot:
		return nil, fmt.Errorf("--tuf-root: %s has more than %d bytes", path, verify.MaxTUFRoot)
	}
	return text, nil
}

// fetchingFile says that a file is fetched.
func (in *invocation) fetchingFile(from string) { in.progress().Stage("fetching " + from) }

func (in *invocation) updateTrustedRoot(u pkgmgr.TrustedRootUpdate) (*trustedRootUpdateData, error) {
	fetch, err := in.fetcher(in.context())
	if err != nil {
		return nil, err
	}
	defer fetch.Close()
	prove, err := in.worker()
	if err != nil {
		return nil, err
	}
	defer prove.Close()
	done, err := u.Update(in.context(), fetch, prove)
	if err != nil {
		return nil, err
	}
	return &trustedRootUpdateData{u.Path, done.URL, done.Was, done.Was == done.Facts.Digest, done.RootVersion, done.Version, done.Expires,
		newTrustedRootData(done.Facts)}, nil
}

// classifyTrustedRoot knows why a trusted root cannot be had.
func (in *invocation) classifyTrustedRoot(err error, f *failure) bool {
	var (
		refused *pkgmgr.TrustedRootRefused
		foreign *pkgmgr.ForeignTrustedRoot
		damaged *pkgmgr.DamagedTUFState
		mirror  *pkgmgr.BadMirror
	)
	help := in.next("help", "trusted-root", "update")
	switch {
	case errors.As(err, &mirror):
		f.exit, f.code, f.hint = exitUsage, "usage", help
	case errors.As(err, &foreign):
		f.exit, f.code, f.hint = exitDecision, "trusted_root.foreign", in.again("--replace")
		f.details = trustedRootDetails{Path: foreign.Path}
	case errors.As(err, &damaged):
		f.exit, f.code, f.hint = exitIntegrity, "trusted_root.state", render.Command("rm", damaged.Path)
		f.details = trustedRootDetails{Path: damaged.Path}
		f.more = []string{"without it the next update begins anew, and does not know how far the repository had come"}
	case errors.As(err, &refused):
		f.message, f.details = refused.Error(), trustedRootDetails{URL: refused.URL}
		f.exit, f.code, f.hint = exitEvidence, string(refused.Refusal.Code), in.again()
		switch refused.Refusal.Code {
		case verify.CodeNetworkRequest, verify.CodeNetworkTLS:
			f.exit, f.hint = exitFailed, help
		case verify.CodeNetworkUnreachable, verify.CodeNetworkTimeout, verify.CodeNetworkRedirect, verify.CodeNetworkStatus,
			verify.CodeNetworkAnswer, verify.CodeNetworkTooLarge, verify.CodeNetworkNotFound:
			f.exit = exitFailed
		case verify.CodeTUFRoot, verify.CodeTUFSignature:
			f.hint = help
			f.more = []string{"the repository is not the one whose root is known here: --tuf-root names the root of another, which its operator tells"}
		case verify.CodeTUFVersion, verify.CodeTUFExpired:
			f.more = []string{"the mirror is an old copy, or somebody withholds what is newer; the trusted root stays as it is"}
		}
	default:
		return false
	}
	return true
}

type trustedRootDetails struct {
	Path string `json:"path,omitempty"`
	URL  string `json:"url,omitempty"`
}
