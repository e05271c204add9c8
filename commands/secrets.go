package commands

import (
	"errors"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/settings"
	"github.com/switchyard-plugins/switchyard/runtime/secret"
)

// secretData is a reference to a secret; the secret itself is in no output.
type secretData struct {
	Pointer  string `json:"pointer" doc:"The place in the settings, a JSON Pointer."`
	Provider string `json:"provider" doc:"Who has it: switchyard (kept here), env (an environment variable), file, or one that this host does not know."`
	Name     string `json:"name" doc:"Its name there."`
	Ready    bool   `json:"ready" doc:"Whether it can be had now."`
	Reason   string `json:"reason" doc:"Why it cannot, or empty."`
}

func (d secretData) text() string {
	text := d.Pointer + ": " + d.Name + " of " + d.Provider
	if !d.Ready {
		text += ", which cannot be had: " + d.Reason
	}
	return text
}

// secretsOf lists the secrets that settings refer to.
func (in *invocation) secretsOf(h *pkgmgr.Home, s *pkgmgr.Settings) ([]secretData, error) {
	d, err := settings.Parse(s.Text)
	if err != nil {
		return nil, err
	}
	out := []secretData{}
	for _, n := range s.Notes() {
		if !n.Secret {
			continue
		}
		value, err := d.Get(n.Pointer)
		if err != nil {
			return nil, err
		}
		ref, ok := secret.RefOf(value)
		if !ok {
			continue
		}
		one := secretData{Pointer: n.Pointer, Provider: ref.Provider, Name: ref.Name}
		_, err = in.hostOf(h).Secrets().Resolve(s.ID, ref)
		var unresolved *secret.Unresolved
		switch {
		case errors.As(err, &unresolved):
			one.Reason = unresolved.Reason
		case err != nil:
			one.Reason = err.Error()
		default:
			one.Ready = true
		}
		out = append(out, one)
	}
	return out, nil
}

type secretsListData struct {
	Plugin  string       `json:"plugin" doc:"The plugin's id."`
	Secrets []secretData `json:"secrets" doc:"The secrets that its settings refer to, in the settings' order."`
	Unused  []string     `json:"unused" doc:"Names of secrets that are kept here for it and that its settings do not refer to."`
}

func secretsListCommand(in *invocation) *cli.Command {
	return &cli.Command{
		ArgsUsage:   "NAME",
		Description: "Lists the secrets that a session plugin's settings refer to, and whether each can be had now. No secret is shown, here or anywhere.",
		UsageText:   "switchyard secrets list org.example.words",
		Action: func(c *cli.Context) error {
			h, s, err := in.settingsArgument(c, 1, 1)
			if err != nil {
				return err
			}
			data := secretsListData{Plugin: s.ID, Unused: []string{}}
			if data.Secrets, err = in.secretsOf(h, s); err != nil {
				return err
			}
			kept, err := in.hostOf(h).Secrets().Names(s.ID)
			if err != nil {
				return err
			}
			for _, name := range kept {
				if !slices.ContainsFunc(data.Secrets, func(d secretData) bool { return d.Provider == secret.Kept && d.Name == name }) {
					data.Unused = append(data.Unused, name)
				}
			}
			in.show(data, func(p *page) {
				if len(data.Secrets)+len(data.Unused) == 0 {
					in.note("The settings of %s refer to no secret.", s.ID)
				}
				for _, one := range data.Secrets {
					p.line("%s", one.text())
				}
				for _, name := range data.Unused {
					p.line("%s is kept, and no setting refers to it", name)
				}
			})
			return nil
		},
	}
}

func secretsSetCommand(in *invocation) *cli.Command {
	var from string
	return &cli.Command{
		ArgsUsage: "NAME POINTER",
		Description: "Keeps a secret for a session plugin, sealed in the data directory, and lets the setting at POINTER, which the plugin's schema must have for a secret, refer to " +
			"it. The plugin gets it with each request. The secret is read from --from and is never an argument; one line end at its end is left out.\n\n" +
			"A setting can refer to a secret elsewhere instead: switchyard config set NAME POINTER '{\"secretRef\":{\"provider\":\"env\",\"name\":\"VARIABLE\"}}', or the " +
			"provider file with the absolute path of a file that nobody else can read.",
		UsageText: "switchyard secrets set org.example.words apiToken --from @token.txt\n" +
			"pass show words | switchyard secrets set org.example.words apiToken --from -",
		Flags: flags{&cli.StringFlag{Name: "from", Destination: &from, Usage: "read it from `@FILE`, env:NAME or - for standard input"}},
		Action: func(c *cli.Context) error {
			p, err := in.configured(c, 2, 2)
			if err != nil {
				return err
			}
			if from == "" {
				return in.usage("--from says where the secret is read from: @FILE, env:NAME or -")
			}
			value, err := in.secret("from", "a secret", from, secret.Max+2)
			if err != nil {
				return err
			}
			if value = secret.Trim(value); secret.Check(value) != nil {
				return in.usage("--from: %v", secret.Check(value))
			}
			pointer := pointerOf(p.args[1])
			kept := secret.Ref{Provider: secret.Kept, Name: pointer}
			s, err := p.edit(in.context(), func(d *settings.Document) error { return d.Set(pointer, kept.JSON()) }, func(s *pkgmgr.Settings) error {
				for _, n := range s.Notes() {
					if n.Secret && n.Pointer == pointer { // the secret first: its reference then leads to it
						return in.hostOf(p.home).Secrets().Set(s.ID, kept.Name, value)
					}
				}
				return in.usage("the schema of %s has no secret at %s", s.ID, pointer)
			})
			if err != nil {
				return err
			}
			return in.nowSet(p.home, s, pointer, "Keeps the secret")
		},
	}
}

type secretsUnsetData struct {
	Plugin  string `json:"plugin" doc:"The plugin's id."`
	Pointer string `json:"pointer" doc:"The place that referred to it, empty for all of the plugin's secrets."`
}

func secretsUnsetCommand(in *invocation) *cli.Command {
	return &cli.Command{
		ArgsUsage: "NAME [POINTER]",
		Description: "Forgets a secret that is kept for a session plugin and takes the setting at POINTER away; without POINTER every secret that is kept for it, also of a plugin " +
			"that is not installed any more. Settings that refer to those are left as they are then.",
		UsageText: "switchyard secrets unset org.example.words apiToken\nswitchyard secrets unset org.example.words",
		Action: func(c *cli.Context) error {
			p, err := in.configured(c, 1, 2)
			if err != nil {
				return err
			}
			data := secretsUnsetData{Plugin: p.ref.ID}
			if len(p.args) == 2 && p.args[1] != "" {
				data.Pointer = pointerOf(p.args[1])
				kept, err := in.hostOf(p.home).Secrets().Names(p.ref.ID)
				if err != nil {
					return err
				}
				_, err = p.edit(in.context(), func(d *settings.Document) error {
					_, err := d.Get(data.Pointer)
					if errors.Is(err, settings.ErrNoPlace) && slices.Contains(kept, data.Pointer) {
						return nil // the kept secret goes all the same
					}
					if err != nil {
						return err
					}
					return d.Remove(data.Pointer)
				}, nil)
				if err != nil {
					return err
				}
			}
			if err := in.hostOf(p.home).Secrets().Remove(p.ref.ID, data.Pointer); err != nil {
				return err
			}
			in.report(data, func(p *page) {
				if data.Pointer == "" {
					p.line("Forgot every secret that was kept for %s.", data.Plugin)
					return
				}
				p.line("Forgot the secret %s of %s.", data.Pointer, data.Plugin)
			})
			return nil
		},
	}
}
