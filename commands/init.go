package commands

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
	"github.com/switchyard-plugins/switchyard/sdk/scaffold"
)

type initData struct {
	Directory string   `json:"directory" doc:"Where the project is."`
	ID        string   `json:"id" doc:"The plugin's id."`
	Language  string   `json:"language" doc:"The language of the project."`
	Files     []string `json:"files" doc:"What was written, relative to the directory."`
}

type initOptions struct{ language, id, name, module, sdk string }

func initCommand(in *invocation) *cli.Command {
	var o initOptions
	return &cli.Command{
		ArgsUsage: "DIR",
		Description: "Writes a plugin project that works: a plugin with an inspect and an operate action, a manifest, and tests that hold it to the " +
			"protocol. Nothing is overwritten.\n\n" +
			"A Go project is a plugin of the call protocol, a Python project one of the session protocol, with typed operations and a stream. The Python " +
			"project contains its SDK.\n\n" +
			"A Go project requires the release of the SDK that this program is. A program that was built from a checkout of its source uses that checkout; " +
			"where it cannot be found, name it with --sdk.",
		UsageText: "switchyard init my-plugin\nswitchyard init my-plugin --lang python --id org.example.my-plugin\nswitchyard init my-plugin --sdk ~/src/switchyard\nswitchyard init . --id file-count --name 'File count'",
		Flags: flags{
			&cli.StringFlag{Name: "lang", Value: "go", Destination: &o.language, Usage: "the `LANGUAGE`: " + strings.Join(scaffold.Languages(), ", ") + " (default go)"},
			&cli.StringFlag{Name: "id", Destination: &o.id, Usage: "the plugin's `ID` (default: the directory's name; for Python com.example.NAME)"},
			&cli.StringFlag{Name: "name", Destination: &o.name, Usage: "the plugin's `NAME` for people (default: the id)"},
			&cli.StringFlag{Name: "module", Destination: &o.module, Usage: "the Go module's `PATH` (default: example.com/ID)"},
			&cli.StringFlag{Name: "sdk", Destination: &o.sdk, Usage: "use the SDK in `DIR`, a checkout of this program's source"},
		},
		Action: func(c *cli.Context) error {
			dir, err := in.oneArgument(c)
			if err != nil {
				return err
			}
			return in.init(dir, o)
		},
	}
}

func (in *invocation) init(dir string, o initOptions) error {
	if !slices.Contains(scaffold.Languages(), o.language) {
		return in.usage("--lang: no template for \"%s\"; there is %s", o.language, strings.Join(scaffold.Languages(), ", "))
	}
	p := scaffold.Project{Language: o.language, ID: o.id, Name: o.name, Module: o.module}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	check := manifest.CheckID
	if o.language == scaffold.Python {
		check = sessionmanifest.CheckID
		if o.sdk != "" || o.module != "" {
			return in.usage("--sdk and --module are for Go; a Python project contains its SDK")
		}
	}
	if p.ID == "" {
		p.ID = filepath.Base(abs)
		if p.Name == "" {
			p.Name = p.ID
		}
		if o.language == scaffold.Python {
			p.ID = "com.example." + p.ID
		}
	}
	if err := check(p.ID); err != nil {
		return in.usage("the id \"%s\" %v; name it with --id", p.ID, err)
	}
	if p.Name == "" {
		p.Name = p.ID
	}
	if o.language == scaffold.Python {
		return in.writeProject(dir, abs, p, "make test")
	}
	if p.Module == "" {
		p.Module = "example.com/" + p.ID
	}
	if p.SDK, p.Version, err = in.sdk(o.sdk); err != nil {
		return err
	}
	if o.sdk == "" && p.SDK != "" {
		in.warn("this program is no release: the project uses the SDK in %s", p.SDK)
	}
	return in.writeProject(dir, abs, p, "go mod tidy && make build test")
}

// writeProject writes a project and tells what to do next in its directory.
func (in *invocation) writeProject(dir, abs string, p scaffold.Project, next string) error {
	files, err := scaffold.Write(dir, p)
	var invalid *manifest.Invalid
	if errors.As(err, &invalid) {
		return in.usage("%v", err)
	}
	if err != nil {
		return err
	}
	data := initData{abs, p.ID, p.Language, files}
	in.report(data, func(page *page) {
		page.line("Wrote %s into %s:", page.style.Mark(render.Strong, p.ID), dir)
		for _, f := range files {
			page.line("  %s", f)
		}
		page.line("")
		page.line("%s %s", page.style.Mark(render.Faint, "Next:"), render.Safe("cd "+render.Word(dir)+" && "+next))
	})
	return nil
}
