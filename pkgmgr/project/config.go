package project

import (
	"fmt"
	"maps"
	"slices"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/lockfile/tomlstrict"
	"github.com/switchyard-plugins/switchyard/pkgmgr/project/versionrange"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
	"github.com/switchyard-plugins/switchyard/verify/policy"
)

// ConfigVersion is the only version of switchyard.toml that is known.
const ConfigVersion = 1

// Bounds of switchyard.toml.
const (
	MaxConfigBytes = 1 << 20
	MaxPlugins     = 1000
	MaxListSources = 16
)

// Config is switchyard.toml.
type Config struct {
	// Platforms to lock for, as "os/arch"; nil when the file does not say, which
	// means the one that the tool runs on.
	Platforms []string
	Plugins   map[string]Wanted // by id, never nil
	Policy    *policy.Narrowing // nil when the file does not say
	// Lists are where revocation lists are published that the project's users may want
	// to follow anew, in the order of the file, each in its one spelling.
	Lists []ListURL
}

// Wanted is what a project asks of one plugin.
type Wanted struct {
	Source  string   // as lockfile.Plugin.Source; never ""
	Version string   // an exact version or a range, as package versionrange reads it; "" for any
	Scopes  []string // sorted; nil when the file does not say, empty for none
}

// IDs returns the wanted plugins' ids, sorted.
func (c *Config) IDs() []string { return slices.Sorted(maps.Keys(c.Plugins)) }

// Accepts reports whether a version is one that is asked for.
func (w Wanted) Accepts(version string) bool {
	if w.Version == "" {
		return true
	}
	r, err := versionrange.Parse(w.Version)
	return err == nil && r.Contains(version)
}

// ParseConfig reads a switchyard.toml, or returns lockfile.Faults: every fault
// with its position. name is used in messages only.
func ParseConfig(name string, text []byte) (*Config, error) {
	c, _, err := parse(name, text)
	return c, err
}

// parse also returns the tree, for edits.
func parse(name string, text []byte) (*Config, *tomlstrict.Document, error) {
	doc, err := tomlstrict.Parse(name, text, MaxConfigBytes)
	if err != nil {
		return nil, nil, err
	}
	m := doc.Root.Member("version")
	if m != nil && m.Value.Kind == tomlstrict.Integer && m.Value.Integer != ConfigVersion {
		doc.FaultCause(m.Value.Start, ErrVersion, "version %d of this file is not known; this switchyard reads version %d",
			m.Value.Integer, ConfigVersion)
		return nil, nil, doc.Err()
	}
	c := reader{doc}.config()
	if err := doc.Err(); err != nil {
		return nil, nil, err
	}
	return c, doc, nil
}

type reader struct{ *tomlstrict.Document }

func (r reader) config() *Config {
	t := r.Read(r.Root, ConfigName)
	t.Required("version", tomlstrict.Integer)
	c := &Config{Platforms: r.platforms(t), Plugins: make(map[string]Wanted)}
	if plugins := t.Optional("plugins", tomlstrict.Table); plugins != nil {
		if n := len(plugins.Members); n > MaxPlugins {
			r.FaultCause(plugins.Start, tomlstrict.ErrTooLarge, "%d plugins; at most %d are allowed", n, MaxPlugins)
		} else {
			for _, m := range plugins.Members {
				c.Plugins[m.Name] = r.wanted(m)
			}
		}
	}
	if n := t.Optional("policy", tomlstrict.Table); n != nil {
		c.Policy = policy.ParseNarrowing(r.Document, n)
	}
	for _, n := range t.Tables("revocations", MaxListSources) {
		r.list(c, n)
	}
	t.Close()
	return c
}

func (r reader) platforms(t *tomlstrict.TableReader) []string {
	values, ok := t.Texts("platforms", false, lockfile.MaxPlatforms)
	if ok && len(values) == 0 {
		r.Faultf(t.Node().Member("platforms").Value.Start, "platforms is empty; leave it out to mean the platform in use")
	}
	var platforms []string
	for _, v := range values {
		if err := lockfile.CheckPlatform(v.Text); err != nil {
			r.Faultf(v.Offset, "%v", err)
		} else if v.Text == lockfile.Any {
			r.Faultf(v.Offset, "platforms names real platforms, such as \"%s\", not \"%s\"", "linux/amd64", v.Text)
		} else if slices.Contains(platforms, v.Text) {
			r.Faultf(v.Offset, "platform \"%s\" occurs twice", v.Text)
		}
		platforms = append(platforms, v.Text)
	}
	return platforms
}

// list reads one [[revocations]]: a place, and nothing that would add an issuer or a root.
func (r reader) list(c *Config, n *tomlstrict.Node) {
	t := r.Read(n, "[[revocations]]")
	if v, ok := t.Text("source", true); ok {
		switch u, err := ParseListURL(v.Text); {
		case err != nil:
			r.Faultf(v.Offset, "source %v", err)
		case slices.Contains(c.Lists, u):
			r.Faultf(v.Offset, "source \"%s\" occurs twice", u)
		default:
			c.Lists = append(c.Lists, u)
		}
	}
	t.Close()
}

func (r reader) wanted(m *tomlstrict.Member) Wanted {
	if err := manifest.CheckID(m.Name); err != nil {
		r.Faultf(m.NameStart, "plugin id \"%s\" %v", m.Name, err)
	}
	if m.Value.Kind != tomlstrict.Table {
		r.Faultf(m.Value.Start, "plugin \"%s\" must be a table with a source, not %v", m.Name, m.Value.Kind)
		return Wanted{}
	}
	for _, inner := range m.Value.Members {
		if inner.Value.Kind == tomlstrict.Table {
			r.Faultf(inner.NameStart, "plugin \"%s\" has no table \"%s\"; an id with a dot is quoted: [plugins.\"%s\"]",
				m.Name, inner.Name, m.Name+"."+inner.Name)
			return Wanted{}
		}
	}
	t := r.Read(m.Value, fmt.Sprintf("plugin \"%s\"", m.Name))
	var w Wanted
	if v, ok := t.Text("source", true); ok {
		if err := checkSource(v.Text); err != nil {
			r.Faultf(v.Offset, "source %v", err)
		}
		w.Source = v.Text
	}
	if v, ok := t.Text("version", false); ok {
		if err := checkVersion(v.Text); err != nil {
			r.Faultf(v.Offset, "version is %v", err)
		}
		w.Version = v.Text
	}
	w.Scopes = r.scopes(t)
	t.Close()
	return w
}

func (r reader) scopes(t *tomlstrict.TableReader) []string {
	values, ok := t.Texts("scopes", false, lockfile.MaxGrants)
	if !ok {
		return nil
	}
	scopes := []string{}
	for _, v := range values {
		if err := lockfile.CheckToken(v.Text); err != nil {
			r.Faultf(v.Offset, "scopes: %v", err)
		} else if slices.Contains(scopes, v.Text) {
			r.Faultf(v.Offset, "scopes: \"%s\" occurs twice", v.Text)
		}
		scopes = append(scopes, v.Text)
	}
	slices.Sort(scopes)
	return scopes
}

func checkVersion(s string) error {
	_, err := versionrange.Parse(s)
	return err
}

// Drift lists where a lock is not what the configuration asks for: Was is what the
// lock has, Now what is asked for. The configuration rules: a plugin that is locked
// and not named by it is Removed, which is what the next lock does to it.
func (c *Config) Drift(lock *lockfile.File) []lockfile.Change {
	var drift []lockfile.Change
	for _, id := range c.IDs() {
		w := c.Plugins[id]
		p, ok := lock.Plugin(id)
		if !ok {
			drift = append(drift, lockfile.Change{Kind: lockfile.Added, ID: id, Now: orAny(w.Version)})
			continue
		}
		note := func(kind lockfile.Kind, platform, was, now string) {
			drift = append(drift, lockfile.Change{Kind: kind, ID: id, Platform: platform, Was: was, Now: now})
		}
		if !w.Accepts(p.Version) {
			note(lockfile.VersionChanged, "", p.Version, w.Version)
		}
		if source := lockfile.CleanSource(w.Source); source != p.Source {
			note(lockfile.SourceChanged, "", p.Source, source)
		}
		if w.Scopes != nil && !slices.Equal(w.Scopes, p.Grants) {
			note(lockfile.GrantsChanged, "", list(p.Grants), list(w.Scopes))
		}
		for _, platform := range c.Platforms {
			if _, _, ok := p.For(platform); !ok {
				note(lockfile.PlatformMissing, platform, "", "")
			}
		}
	}
	if lock == nil {
		return drift
	}
	for _, p := range lock.Plugins {
		if _, ok := c.Plugins[p.ID]; !ok {
			drift = append(drift, lockfile.Change{Kind: lockfile.Removed, ID: p.ID, Was: p.Version})
		}
	}
	return drift
}
