package commands

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/schemas/ijson"
	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
	"github.com/switchyard-plugins/switchyard/sdk/conformance"
)

type conformanceData struct {
	Command  []string             `json:"command" doc:"The program that was tested, and its arguments."`
	Cases    int                  `json:"cases" doc:"How many cases ran."`
	Passed   int                  `json:"passed" doc:"How many of them passed."`
	Groups   []conformanceGroup   `json:"groups" doc:"The cases by group, in the corpus's order."`
	Failures []conformanceFailure `json:"failures" doc:"The cases that failed and were not expected to."`
	Expected []string             `json:"expectedFailures" doc:"The cases that failed as the list of --expected-failures says."`
	Stale    []string             `json:"stale" doc:"The cases of that list that passed."`
}

type conformanceGroup struct {
	Name   string `json:"name" doc:"The group."`
	Cases  int    `json:"cases" doc:"How many of its cases ran."`
	Passed int    `json:"passed" doc:"How many of them passed."`
}

type conformanceFailure struct {
	Case     string   `json:"case" doc:"The case's name."`
	Title    string   `json:"title" doc:"What must happen."`
	Rules    []string `json:"rules" doc:"The rules that the case tests."`
	Source   string   `json:"source" doc:"Where the rules come from."`
	Line     int      `json:"line" doc:"The line of the case that failed; 0: after its last step."`
	Step     string   `json:"step" doc:"What that line says."`
	Expected string   `json:"expected" doc:"What should have come."`
	Received string   `json:"received" doc:"What came instead."`
	Fault    string   `json:"fault" doc:"Why the case could not be run, else empty."`
	Trace    []string `json:"trace" doc:"The last messages: -> to the program, <- from it."`
	Stderr   string   `json:"stderr" doc:"The end of the program's standard error."`
	Again    string   `json:"again" doc:"The command that runs this case alone."`
}

func conformanceCommand(in *invocation) *cli.Command {
	var (
		junit, only, expectations, dir, set string
		patience                            time.Duration
	)
	return &cli.Command{
		ArgsUsage: "-- COMMAND [ARGUMENT…]",
		Description: "Tests whether a program is a plugin as the protocols demand: starts it for each case of the built-in corpus, talks to it as a host would, and worse, and " +
			"says for each case that fails what was expected, what came, and by which rule. The program offers the operations that docs/conformance.md lists; " +
			"with --package it is the plugin of that directory, and the cases are those that hold for any plugin. It is started with everything that it asks for granted, and " +
			"with the settings of --settings.\n\n" +
			"conformance list names the cases, conformance show CASE prints one. Exits with 9 if a case fails.",
		UsageText: "switchyard conformance --package . -- bin/my-plugin\nswitchyard conformance --package . --settings @settings.json -- bin/my-plugin\nswitchyard conformance -- ./conformance-plugin\nswitchyard conformance --only streams --junit report.xml -- python3 plugin.py\n" +
			"switchyard conformance list --only frames",
		Flags: flags{
			&cli.StringFlag{Name: "only", Destination: &only, Usage: "run the cases of `GROUP`, or the one case of that name"},
			&cli.StringFlag{Name: "package", Destination: &dir, Usage: "the program is the plugin of the package in `DIR`"},
			settingsFlag(&set),
			&cli.StringFlag{Name: "junit", Destination: &junit, Usage: "also write the results to `FILE` as JUnit XML"},
			&cli.DurationFlag{Name: "patience", Destination: &patience, Value: 5 * time.Second, Usage: "how long an expected message may take, as `DURATION`; more on a busy machine"},
			&cli.StringFlag{Name: "expected-failures", Destination: &expectations, Usage: "`FILE` lists cases that fail, a name a line; one that passes is an error"},
		},
		Action: func(c *cli.Context) error {
			command, err := in.arguments(c, 1, -1)
			if err != nil {
				return err
			}
			list, err := conformance.Cases()
			if err != nil {
				return err
			}
			var own *conformance.Package
			selected := conformance.Select(list, only)
			if dir != "" {
				if own, err = conformance.OpenPackage(dir); err != nil {
					return &pkgmgr.Malformed{Where: dir, File: sessionmanifest.FileName, Err: err}
				}
				selected = own.Cases(selected)
			}
			if err := in.conformanceSettings(own, set); err != nil {
				return err
			}
			if len(selected) == 0 {
				return &noCase{only, own != nil}
			}
			expected, err := readExpectations(expectations, list)
			if err != nil {
				return err
			}
			if err := in.mayWrite(junit); err != nil {
				return err
			}
			in.note("Running %s of the corpus", count(len(selected), "case"))
			if patience <= 0 {
				return in.usage("--patience: %v is no time", patience)
			}
			runner := &conformance.Runner{Command: command, Package: own, Patience: patience, Done: func(r conformance.Result) {
				if r.Failure == nil {
					in.detail("%s passed in %v", r.Case.Name, r.Duration.Round(time.Millisecond))
				} else {
					in.detail("%s failed: %s", r.Case.Name, r.Failure.Summary())
				}
			}}
			results, err := runner.Run(in.context(), selected)
			if in.interrupted() {
				return errInterrupted
			}
			if err != nil {
				return err
			}
			if junit != "" {
				if err := os.WriteFile(junit, conformance.JUnit(results), 0o644); err != nil {
					return err
				}
			}
			data := in.newConformanceData(dir, set, command, results, expected)
			in.show(data, func(p *page) { p.conformance(data) })
			switch {
			case len(data.Failures) > 0:
				return &findings{exit: exitPlugin, code: "conformance.failed", message: strconv.Itoa(len(data.Failures)) + " of " + count(data.Cases, "case") + " failed",
					hint: in.next("conformance", "show", data.Failures[0].Case), data: data}
			case len(data.Stale) > 0:
				return &findings{exit: exitPlugin, code: "conformance.stale", message: "the list of expected failures is out of date: " + strings.Join(data.Stale, ", ") + " passed", data: data}
			}
			return nil
		},
	}
}

// mayWrite makes sure that a report can be written, before minutes are spent on it. What the
// file holds stays until then.
func (in *invocation) mayWrite(file string) error {
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return in.usage("--junit: %v", err)
	}
	return f.Close()
}

// conformanceSettings gives a package the settings of --settings.
func (in *invocation) conformanceSettings(own *conformance.Package, value string) error {
	if own == nil {
		if value != "" {
			return in.usage("--settings are those of the package that --package names; the corpus's cases have their own")
		}
		return nil
	}
	text, err := in.settings(value)
	if err != nil {
		return err
	}
	if text != nil {
		if err := ijson.Check(text); err != nil {
			return in.usage("--settings: %v", err)
		}
	}
	err = own.UseSettings(text)
	var misfit *conformance.SettingsError
	if err == nil || errors.As(err, &misfit) {
		return err
	}
	return &pkgmgr.Malformed{Where: own.Dir, File: sessionmanifest.FileName, Err: err}
}

// A noCase says that the corpus has no such case or group.
type noCase struct {
	name string
	any  bool // of those for any package
}

func (e *noCase) Error() string {
	if e.any {
		return "the corpus has no case for any package in \"" + e.name + "\""
	}
	return "the corpus has no case or group \"" + e.name + "\""
}

func readExpectations(file string, list []*conformance.Case) (conformance.Expectations, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, missingFile(file, err)
	}
	return conformance.ReadExpectations(file, string(text), list)
}

func (in *invocation) newConformanceData(dir, set string, command []string, results []conformance.Result, expected conformance.Expectations) conformanceData {
	d := conformanceData{Command: command, Cases: len(results), Groups: []conformanceGroup{}, Failures: []conformanceFailure{}, Expected: []string{}, Stale: []string{}}
	for _, r := range results {
		if n := len(d.Groups); n == 0 || d.Groups[n-1].Name != r.Case.Group {
			d.Groups = append(d.Groups, conformanceGroup{Name: r.Case.Group})
		}
		g := &d.Groups[len(d.Groups)-1]
		g.Cases++
		if r.Failure == nil {
			g.Passed++
			d.Passed++
		}
	}
	again := []string{in.env.Program, "conformance"}
	if dir != "" {
		again = append(again, "--package", dir)
	}
	if set != "" {
		again = append(again, "--settings", set)
	}
	failed, stale := expected.Compare(results)
	d.Stale = append(d.Stale, stale...)
	for _, r := range results {
		if r.Failure != nil && !isIn(failed, r) {
			d.Expected = append(d.Expected, r.Case.Name)
		}
	}
	for _, r := range failed {
		f := conformanceFailure{Case: r.Case.Name, Title: r.Case.Title, Rules: r.Case.Rules, Source: r.Case.Source, Line: r.Failure.Line, Step: r.Failure.Step,
			Expected: r.Failure.Expected, Received: r.Failure.Received, Fault: r.Failure.Fault, Trace: append([]string{}, r.Failure.Trace...), Stderr: r.Failure.Stderr,
			Again: render.Command(slices.Concat(again, []string{"--only", r.Case.Name, "--"}, command)...)}
		d.Failures = append(d.Failures, f)
	}
	return d
}

func isIn(list []conformance.Result, r conformance.Result) bool {
	for _, x := range list {
		if x.Case == r.Case {
			return true
		}
	}
	return false
}

func (p *page) conformance(d conformanceData) {
	t := render.Table{Columns: []render.Column{{Title: "GROUP", Fixed: true}, {Title: "CASES", Right: true}, {Title: "PASSED", Right: true}, {Title: "FAILED", Right: true}}}
	for _, g := range d.Groups {
		t.Rows = append(t.Rows, []string{g.Name, strconv.Itoa(g.Cases), strconv.Itoa(g.Passed), strconv.Itoa(g.Cases - g.Passed)})
	}
	p.table(t)
	for _, f := range d.Failures {
		p.line("")
		p.line("%s %s", p.style.Mark(render.Warn, "FAILED"), f.Case)
		p.prose(2, f.Title)
		p.field("rules", "%s (%s)", strings.Join(f.Rules, " "), f.Source)
		if f.Line > 0 {
			p.field("step", "line %d: %s", f.Line, f.Step)
		} else {
			p.field("step", "%s", f.Step)
		}
		if f.Fault != "" {
			p.field("fault", "%s", f.Fault)
		} else {
			p.field("expected", "%s", f.Expected)
			p.field("received", "%s", f.Received)
		}
		for _, t := range f.Trace {
			p.line("    %s", t)
		}
		if f.Stderr != "" {
			p.field("stderr", "%s", "")
			for l := range strings.SplitSeq(f.Stderr, "\n") {
				p.line("    %s", l)
			}
		}
		p.field("again", "%s", f.Again)
	}
	p.line("")
	p.line("%d of %s passed", d.Passed, count(d.Cases, "case"))
	if n := len(d.Expected); n > 0 {
		p.line("%s failed as expected", count(n, "case"))
	}
}

type conformanceListData struct {
	Cases []conformanceCase `json:"cases" doc:"The cases, by group and name."`
}

type conformanceCase struct {
	Name     string   `json:"name" doc:"The case's name."`
	Group    string   `json:"group" doc:"Its group."`
	Title    string   `json:"title" doc:"What must happen."`
	Rules    []string `json:"rules" doc:"The rules that it tests."`
	Source   string   `json:"source" doc:"Where the rules come from."`
	Protocol string   `json:"protocol" doc:"The protocol that it speaks."`
}

func newConformanceCase(c *conformance.Case) conformanceCase {
	return conformanceCase{c.Name, c.Group, c.Title, c.Rules, c.Source, string(c.Protocol)}
}

func conformanceListCommand(in *invocation) *cli.Command {
	var only string
	return &cli.Command{
		Description: "Lists the cases of the conformance corpus, or those of one group.",
		UsageText:   "switchyard conformance list\nswitchyard conformance list --only streams --json",
		Flags:       flags{&cli.StringFlag{Name: "only", Destination: &only, Usage: "list the cases of `GROUP`"}},
		Action: func(c *cli.Context) error {
			if err := in.noArguments(c); err != nil {
				return err
			}
			list, err := conformance.Cases()
			if err != nil {
				return err
			}
			data := conformanceListData{Cases: []conformanceCase{}}
			for _, c := range conformance.Select(list, only) {
				data.Cases = append(data.Cases, newConformanceCase(c))
			}
			if len(data.Cases) == 0 {
				return &noCase{name: only}
			}
			in.show(data, func(p *page) {
				t := render.Table{Columns: []render.Column{{Title: "CASE", Fixed: true}, {Title: "RULES", Wrap: true}, {Title: "WHAT", Wrap: true}}}
				for _, c := range data.Cases {
					t.Rows = append(t.Rows, []string{c.Name, strings.Join(c.Rules, " "), c.Title})
				}
				p.table(t)
			})
			return nil
		},
	}
}

type conformanceShowData struct {
	Case conformanceCase `json:"case" doc:"The case."`
	Text string          `json:"text" doc:"The case's file."`
}

func conformanceShowCommand(in *invocation) *cli.Command {
	return &cli.Command{
		ArgsUsage:   "CASE",
		Description: "Prints one case of the conformance corpus as its file has it; docs/conformance.md explains the steps.",
		UsageText:   "switchyard conformance show frames/zero-length",
		Action: func(c *cli.Context) error {
			name, err := in.oneArgument(c)
			if err != nil {
				return err
			}
			list, err := conformance.Cases()
			if err != nil {
				return err
			}
			for _, c := range list {
				if c.Name != name {
					continue
				}
				in.show(conformanceShowData{newConformanceCase(c), c.Text}, func(p *page) {
					for l := range strings.Lines(c.Text) {
						p.line("%s", strings.TrimSuffix(l, "\n"))
					}
				})
				return nil
			}
			return &noCase{name: name}
		},
	}
}

// classifyConformance knows why a program could not be tested.
func (in *invocation) classifyConformance(err error, f *failure) bool {
	var (
		start *conformance.StartError
		dead  *conformance.DeadError
		none  *noCase
		parse *conformance.ParseError
		set   *conformance.SettingsError
	)
	switch {
	case errors.As(err, &start):
		f.exit, f.code = exitNotFound, "not_found.command"
	case errors.As(err, &dead):
		f.exit, f.code = exitPlugin, "conformance.no_plugin"
		f.hint = in.next("help", "conformance")
		if dead.Stderr != "" {
			f.more = strings.Split("standard error:\n"+dead.Stderr, "\n")
		}
	case errors.As(err, &none):
		f.exit, f.code, f.hint = exitNotFound, "not_found.case", in.next("conformance", "list")
	case errors.As(err, &set) && len(set.Problems) == 0:
		f.exit, f.code, f.hint = exitUsage, "settings.none", in.next("help", "conformance")
	case errors.As(err, &set):
		f.exit, f.code, f.hint = exitUsage, "settings.invalid", render.Command("cat", set.Schema)
		if at := slices.Index(in.env.Args, "conformance"); at >= 0 && !set.Given {
			f.hint = render.Command(slices.Concat([]string{in.env.Program}, slices.Insert(slices.Clone(in.env.Args), at+1, "--settings", "@settings.json"))...)
			f.more = []string{"give them with --settings; their schema is " + set.Schema}
		}
	case errors.As(err, &parse):
		f.exit, f.code = exitUsage, "usage"
	default:
		return false
	}
	return true
}
