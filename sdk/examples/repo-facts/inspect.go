package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

var writeInventory = plugin.Action{
	ID:          "write-inventory",
	Name:        "Write inventory",
	Description: `Writes path, size and SHA-256 of every file to a JSON file in the project; input {"path": "inventory.json"}.`,
	Risk:        "creates or replaces one inventory file in the project; changes nothing else",
}

// withoutFiles is what can be said without the project's root.
func withoutFiles(p plugin.Project) plugin.InspectResult {
	return plugin.InspectResult{
		Summary: fmt.Sprintf("%s: nothing is known but its name", p.DisplayName),
		Facts: []plugin.Fact{
			{ID: "project.id", Label: "Project id", Value: p.ID, Source: "host"},
			{ID: "project.name", Label: "Project name", Value: p.DisplayName, Source: "host"},
		},
		Actions:  []plugin.Action{writeInventory},
		Warnings: []string{"the scope project.files.read is not granted, so no file of the project was read"},
	}
}

// A survey collects what a walk says about a project.
type survey struct {
	bounds    bounds
	languages map[string]*language
	builds    []plugin.Fact
	licences  []plugin.Fact
	largest   file
}

type language struct {
	files int
	bytes int64
}

func inspect(ctx context.Context, root *os.Root, b bounds) (plugin.InspectResult, error) {
	s := &survey{bounds: b, languages: map[string]*language{}}
	t, err := walk(ctx, root, b, s.visit)
	if err != nil {
		return plugin.InspectResult{}, err
	}
	vcs := versionControl(root)
	r := plugin.InspectResult{
		Facts:   slices.Concat(sizeFacts(t, s.largest), s.languageFacts(), s.builds, vcs, s.licences),
		Actions: []plugin.Action{writeInventory},
	}
	if len(s.licences) == 0 {
		r.Warnings = append(r.Warnings, "no licence file was found at the project's root")
	}
	r.Warnings = append(r.Warnings, t.warnings()...)
	r.Summary = s.summary(t, vcs)
	return r, nil
}

func (s *survey) visit(f file) error {
	if f.size > s.largest.size {
		s.largest = f
	}
	if name := languageOf(f.name); name != "" {
		l := s.languages[name]
		if l == nil {
			l = &language{}
			s.languages[name] = l
		}
		l.files++
		l.bytes += f.size
	}
	const mostBuilds = 40
	if label := buildFile(f.name); label != "" && len(s.builds) < mostBuilds {
		s.builds = append(s.builds, plugin.Fact{ID: "build." + slug(label), Label: "Build file (" + label + ")", Value: f.path, Source: f.path})
	}
	const mostLicences = 10
	if isLicenceFile(f.path) && len(s.licences) < mostLicences {
		s.licences = append(s.licences, licenceFact(f, s.bounds.text))
	}
	return nil
}

func sizeFacts(t *tally, largest file) []plugin.Fact {
	facts := []plugin.Fact{
		{ID: "size.files", Label: "Files", Value: strconv.Itoa(t.files), Source: "."},
		{ID: "size.directories", Label: "Directories", Value: strconv.Itoa(t.directories), Source: "."},
		{ID: "size.bytes", Label: "Bytes", Value: strconv.FormatInt(t.bytes, 10), Source: "."},
	}
	if largest.path != "" {
		facts = append(facts, plugin.Fact{ID: "size.largest", Label: "Largest file", Value: fmt.Sprintf("%s, %s", largest.path, size(largest.size)), Source: largest.path})
	}
	if t.links > 0 {
		facts = append(facts, plugin.Fact{ID: "size.links", Label: "Symbolic links", Value: strconv.Itoa(t.links), Source: ".", Warning: "not followed"})
	}
	if t.stopped != "" {
		for i := range facts {
			facts[i].Warning = "incomplete: " + t.stopped
		}
	}
	return facts
}

// ranked returns the names of the languages, the one with most bytes first.
func (s *survey) ranked() []string {
	return slices.SortedFunc(maps.Keys(s.languages), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.languages[b].bytes, s.languages[a].bytes), cmp.Compare(a, b))
	})
}

func (s *survey) languageFacts() []plugin.Fact {
	const most = 12
	var total int64
	for _, l := range s.languages {
		total += l.bytes
	}
	var facts []plugin.Fact
	for _, name := range s.ranked() {
		if len(facts) == most {
			break
		}
		l := s.languages[name]
		value := count(l.files, "file", "files") + ", " + size(l.bytes)
		if total > 0 {
			value += fmt.Sprintf(", %.1f %%", 100*float64(l.bytes)/float64(total))
		}
		facts = append(facts, plugin.Fact{ID: "language." + slug(name), Label: "Language (" + name + ")", Value: value, Source: "."})
	}
	return facts
}

func (s *survey) summary(t *tally, vcs []plugin.Fact) string {
	parts := []string{count(t.files, "file", "files"), size(t.bytes)}
	if names := s.ranked(); len(names) > 0 {
		parts = slices.Insert(parts, 0, "mostly "+names[0])
	}
	for _, f := range vcs {
		if f.ID == "vcs.branch" {
			parts = append(parts, "on branch "+f.Value)
		}
	}
	var ids []string
	for _, f := range s.licences {
		if f.Value != unknownLicence && !slices.Contains(ids, f.Value) {
			ids = append(ids, f.Value)
		}
	}
	if len(ids) > 0 {
		parts = append(parts, "licence "+strings.Join(ids, ", "))
	}
	return strings.Join(parts, ", ")
}

func (t *tally) warnings() []string {
	var w []string
	if t.stopped != "" {
		w = append(w, "the walk is incomplete: "+t.stopped)
	}
	for _, p := range t.unreadable {
		w = append(w, "cannot read "+p)
	}
	if t.moreUnreadable > 0 {
		w = append(w, fmt.Sprintf("cannot read %d more", t.moreUnreadable))
	}
	if t.special > 0 {
		w = append(w, count(t.special, "entry is", "entries are")+" neither file, directory nor link")
	}
	return w
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// size renders bytes for people, in powers of 1000.
func size(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10) + " B"
	}
	f := float64(n)
	for _, unit := range []string{"kB", "MB", "GB"} {
		if f /= 1000; f < 1000 {
			return fmt.Sprintf("%.1f %s", f, unit)
		}
	}
	return fmt.Sprintf("%.1f TB", f/1000)
}

// slug makes the part of a fact's id that stands for a label.
func slug(label string) string {
	replace := strings.NewReplacer("C++", "cpp", "C#", "csharp", "F#", "fsharp", " ", "-", "/", "-")
	return strings.ToLower(replace.Replace(label))
}

func extension(name string) string { return strings.ToLower(path.Ext(name)) }
