package commands

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/settings"
	"github.com/switchyard-plugins/switchyard/runtime/secret"
	"github.com/switchyard-plugins/switchyard/schemas/ijson"
	"github.com/switchyard-plugins/switchyard/schemas/subset"
)

// settingsData is what is set for a session plugin. Nothing of it is a secret.
type settingsData struct {
	Plugin        string         `json:"plugin" doc:"The plugin's id."`
	Version       string         `json:"version" doc:"The version of the package whose schema was asked."`
	Schema        string         `json:"schema" doc:"The schema of the settings."`
	SchemaVersion string         `json:"schemaVersion" doc:"The version that the package states of its settings, or empty."`
	SetFor        string         `json:"setFor" doc:"The version of the settings that they were set for last, or empty."`
	Settings      jsontext.Value `json:"settings" doc:"What is set, one object. What its schema calls private is masked."`
	Missing       []settingFault `json:"missing" doc:"What the schema still asks for."`
	Wrong         []settingFault `json:"wrong" doc:"What the schema refuses: it was set for another version."`
	Secrets       []secretData   `json:"secrets" doc:"The secrets that the settings refer to."`
}

type settingFault struct {
	Pointer string `json:"pointer" doc:"The place in the settings, a JSON Pointer."`
	Message string `json:"message" doc:"What is asked for there."`
}

func newSettingFaults(list []subset.Problem) []settingFault {
	out := []settingFault{}
	for _, p := range list {
		out = append(out, settingFault{p.Pointer, p.Message})
	}
	return out
}

func (in *invocation) newSettingsData(h *pkgmgr.Home, s *pkgmgr.Settings) (*settingsData, error) {
	wrong, missing := s.Problems()
	d := &settingsData{Plugin: s.ID, Version: s.Version, Schema: s.SchemaID, SchemaVersion: s.SchemaVersion, SetFor: s.SetFor,
		Settings: jsontext.Value(s.Shown()), Missing: newSettingFaults(missing), Wrong: newSettingFaults(wrong)}
	var err error
	d.Secrets, err = in.secretsOf(h, s)
	return d, err
}

// settingsIn returns what is set for the plugin that ref selects, nil where that cannot be
// told: a package that is to be looked at need not be sound.
func (in *invocation) settingsIn(ref pkgmgr.Ref) *settingsData {
	dir, err := in.dataDir()
	if err != nil {
		return nil
	}
	h, err := pkgmgr.Open(dir, pkgmgr.Options{Now: in.env.Now})
	if err != nil {
		return nil
	}
	s, err := h.SettingsOf(context.Background(), ref, in.lockOrNone())
	if err != nil {
		return nil
	}
	d, err := in.newSettingsData(h, s)
	if err != nil {
		return nil
	}
	return d
}

// set tells in one line what is set for a plugin.
func (d *settingsData) set() string {
	var top map[string]json.RawMessage
	if string(d.Settings) == "{}" {
		return "nothing; its settings are " + d.Schema
	}
	if json.Unmarshal(d.Settings, &top) != nil {
		return "private"
	}
	text := count(len(top), "setting", "settings")
	if len(d.Secrets) > 0 {
		text += ", " + count(len(d.Secrets), "secret", "secrets")
	}
	return text
}

func configListCommand(in *invocation) *cli.Command {
	return &cli.Command{
		ArgsUsage: "NAME",
		Description: "Shows what is set for a session plugin and what its schema still asks for. Values that the schema calls private are masked, and secrets are " +
			"shown as references only.",
		UsageText: "switchyard config list org.example.words\nswitchyard config list org.example.words --json",
		Action: func(c *cli.Context) error {
			h, s, err := in.settingsArgument(c, 1, 1)
			if err != nil {
				return err
			}
			return in.showSettings(h, s)
		},
	}
}

// A configured is a session plugin that a command's first argument names.
type configured struct {
	home *pkgmgr.Home
	ref  pkgmgr.Ref
	lock *pkgmgr.Lock
	args []string // NAME and what follows it
}

func (in *invocation) configured(c *cli.Context, least, most int) (*configured, error) {
	args, err := in.arguments(c, least, most)
	if err != nil {
		return nil, err
	}
	ref, err := in.ref(args[0])
	if err != nil {
		return nil, err
	}
	h, lock, err := in.site()
	return &configured{h, ref, lock, args}, err
}

// edit is pkgmgr's EditSettings.
func (p *configured) edit(ctx context.Context, edit func(*settings.Document) error, last func(*pkgmgr.Settings) error) (*pkgmgr.Settings, error) {
	return p.home.EditSettings(ctx, p.ref, p.lock, edit, last)
}

// settingsArgument reads NAME and the settings that it has.
func (in *invocation) settingsArgument(c *cli.Context, least, most int) (*pkgmgr.Home, *pkgmgr.Settings, error) {
	p, err := in.configured(c, least, most)
	if err != nil {
		return nil, nil, err
	}
	s, err := p.home.SettingsOf(in.context(), p.ref, p.lock)
	return p.home, s, err
}

func (in *invocation) showSettings(h *pkgmgr.Home, s *pkgmgr.Settings) error {
	data, err := in.newSettingsData(h, s)
	if err != nil {
		return err
	}
	in.show(data, func(p *page) {
		p.title(data.Plugin + " " + data.Version)
		p.field("schema", "%s", data.Schema)
		if data.SchemaVersion != "" {
			p.field("version", "%s", data.SchemaVersion)
		}
		if data.SetFor != "" && data.SetFor != data.SchemaVersion {
			p.field("set for", "%s", data.SetFor)
		}
		for _, one := range data.Secrets {
			p.field("secret", "%s", one.text())
		}
		for _, one := range data.Missing {
			p.field("missing", "%s %s", one.Pointer, one.Message)
		}
		for _, one := range data.Wrong {
			p.field("refused", "%s %s", one.Pointer, one.Message)
		}
		p.document(data.Settings)
	})
	return nil
}

type configGetData struct {
	Plugin  string         `json:"plugin" doc:"The plugin's id."`
	Pointer string         `json:"pointer" doc:"The place in the settings, a JSON Pointer."`
	Value   jsontext.Value `json:"value" doc:"What is set there. What its schema calls private is masked."`
}

func configGetCommand(in *invocation) *cli.Command {
	return &cli.Command{
		ArgsUsage:   "NAME POINTER",
		Description: "Prints one setting of a session plugin as JSON. What the schema calls private is masked.",
		UsageText:   "switchyard config get org.example.words /language",
		Action: func(c *cli.Context) error {
			_, s, err := in.settingsArgument(c, 2, 2)
			if err != nil {
				return err
			}
			pointer := pointerOf(c.Args().Get(1))
			d, err := settings.Parse(s.Text)
			if err != nil {
				return err
			}
			value, err := d.Get(pointer)
			if err != nil {
				return err
			}
			var notes []subset.Note // those of what is inside of the value, as seen from it
			for _, n := range s.Notes() {
				switch {
				case !n.Private:
				case n.Pointer == pointer || strings.HasPrefix(pointer, n.Pointer+"/"):
					value = json.RawMessage(`"` + settings.Mask + `"`)
				case strings.HasPrefix(n.Pointer, pointer+"/"):
					n.Pointer = strings.TrimPrefix(n.Pointer, pointer)
					notes = append(notes, n)
				}
			}
			if len(notes) > 0 {
				value = settings.Shown(value, notes)
			}
			data := configGetData{s.ID, pointer, jsontext.Value(value)}
			in.show(data, func(p *page) { p.document(data.Value) })
			return nil
		},
	}
}

// pointerOf lets the name of a member stand for its pointer.
func pointerOf(word string) string {
	if word == "" || strings.ContainsAny(word, "/~") {
		return word
	}
	return "/" + word
}

// maxSetting bounds one value of the settings in bytes.
const maxSetting = 1 << 20

func configSetCommand(in *invocation) *cli.Command {
	var text bool
	return &cli.Command{
		ArgsUsage: "NAME POINTER VALUE",
		Description: "Sets one of a session plugin's settings; the plugin's processes get all of them when they start, if it may have them. POINTER is a member's name or a JSON " +
			"Pointer, \"\" all settings at once. VALUE is JSON, or with --text a text; @FILE, - and env:NAME say where it is read from, which is the only way for what " +
			"the schema calls private. What the plugin's schema refuses is not set. Secrets are set with `switchyard secrets set`.",
		UsageText: "switchyard config set org.example.words language --text en\n" +
			"switchyard config set org.example.words /limits/words 5000\n" +
			"switchyard config set org.example.words \"\" @settings.json",
		Flags: flags{&cli.BoolFlag{Name: "text", Destination: &text, Usage: "VALUE is a text and not JSON"}},
		Action: func(c *cli.Context) error {
			p, err := in.configured(c, 3, 3)
			if err != nil {
				return err
			}
			pointer := pointerOf(p.args[1])
			value, err := in.setting(p.args, text)
			if err != nil {
				return err
			}
			s, err := p.edit(in.context(), func(d *settings.Document) error { return d.Set(pointer, value) }, func(s *pkgmgr.Settings) error {
				if !indirect(p.args[2]) && settings.Private(pointer, s.Notes()) {
					return in.usage("%s is private by the plugin's schema and never an argument, which other users can see; give @FILE, env:NAME or -", pointer)
				}
				return nil
			})
			if err != nil {
				return err
			}
			return in.nowSet(p.home, s, pointer, "Set")
		},
	}
}

// indirect reports whether a value says where it is read from.
func indirect(value string) bool {
	return value == "-" || strings.HasPrefix(value, "@") || strings.HasPrefix(value, "env:")
}

// setting reads the VALUE of config set.
func (in *invocation) setting(args []string, text bool) ([]byte, error) {
	value, err := in.content("value", args[2], maxSetting)
	if err != nil {
		return nil, err
	}
	if text {
		if indirect(args[2]) {
			value = secret.Trim(value)
		}
		return json.Marshal(string(value))
	}
	if err := ijson.Check(value); err != nil {
		return nil, &usageError{message: "the value is no JSON: " + err.Error() + "; a text is given with --text",
			hint: []string{"config", "set", args[0], args[1], "--text", args[2]}}
	}
	return value, nil
}

type configSetData struct {
	settingsData
	Pointer string `json:"pointer" doc:"The place that was changed."`
}

// nowSet tells what was changed and what is still asked for.
func (in *invocation) nowSet(h *pkgmgr.Home, s *pkgmgr.Settings, pointer, verb string) error {
	all, err := in.newSettingsData(h, s)
	if err != nil {
		return err
	}
	in.report(configSetData{*all, pointer}, func(p *page) {
		place := pointer
		if place == "" {
			place = "all settings"
		}
		p.line("%s %s of %s.", verb, place, s.ID)
		for _, one := range all.Missing {
			p.field("missing", "%s %s", one.Pointer, one.Message)
		}
	})
	return nil
}

type configUnsetData struct {
	Plugin  string `json:"plugin" doc:"The plugin's id."`
	Pointer string `json:"pointer" doc:"The place that was taken away, empty for all."`
	Was     bool   `json:"was" doc:"Whether something was set."`
}

func configUnsetCommand(in *invocation) *cli.Command {
	return &cli.Command{
		ArgsUsage: "NAME [POINTER]",
		Description: "Takes one of a session plugin's settings away, or without POINTER all of them, also of a plugin that is not installed any more. Secrets that this host " +
			"keeps for it stay: `switchyard secrets unset` takes those away.",
		UsageText: "switchyard config unset org.example.words language\nswitchyard config unset org.example.words",
		Action: func(c *cli.Context) error {
			p, err := in.configured(c, 1, 2)
			if err != nil {
				return err
			}
			data := configUnsetData{Plugin: p.ref.ID, Was: true}
			if len(p.args) == 1 || p.args[1] == "" {
				data.Was, err = p.home.RemoveSettings(p.ref.ID)
			} else {
				data.Pointer = pointerOf(p.args[1])
				_, err = p.edit(in.context(), func(d *settings.Document) error { return d.Remove(data.Pointer) }, nil)
			}
			if err != nil {
				return err
			}
			in.report(data, func(p *page) {
				switch {
				case !data.Was:
					p.line("Nothing is set for %s.", data.Plugin)
				case data.Pointer == "":
					p.line("Took all settings of %s away.", data.Plugin)
				default:
					p.line("Took %s of %s away.", data.Pointer, data.Plugin)
				}
			})
			return nil
		},
	}
}
