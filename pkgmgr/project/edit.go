package project

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/switchyard-plugins/switchyard/lockfile/tomlstrict"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// AddPlugin returns text with the plugin set to w: an entry that exists gets the
// values that differ, in place; a new one is appended as a table. Everything
// else keeps its bytes: comments, order, spacing, line ends. Members that w
// leaves open (Version "", Scopes nil) are removed. An empty text becomes a new
// file. The name is used in messages only.
func AddPlugin(name string, text []byte, id string, w Wanted) ([]byte, error) {
	if err := manifest.CheckID(id); err != nil {
		return nil, fmt.Errorf("plugin id \"%s\" %w", id, err)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		text = fmt.Appendf(nil, "version = %d\n", ConfigVersion)
	}
	before, doc, err := parse(name, text)
	if err != nil {
		return nil, err
	}
	if w.Scopes != nil {
		w.Scopes = slices.Sorted(slices.Values(w.Scopes))
	}
	after := maps.Clone(before.Plugins)
	after[id] = w
	if _, exists := before.Plugins[id]; !exists {
		text = appendPlugin(doc, text, id, w)
	} else {
		for _, m := range members(w) {
			e, err := open(name, text, id)
			if err != nil {
				return nil, err
			}
			text = e.set(m.key, m.value, m.changed(before.Plugins[id]))
		}
	}
	return checked(name, text, &Config{Platforms: before.Platforms, Plugins: after, Policy: before.Policy})
}

// RemovePlugin returns text without the plugin's entry and without the comment
// lines that stand directly above its table's header. Everything else keeps its
// bytes. An id that is not there is ErrNotWanted.
func RemovePlugin(name string, text []byte, id string) ([]byte, error) {
	before, _, err := parse(name, text)
	if err != nil {
		return nil, err
	}
	if _, ok := before.Plugins[id]; !ok {
		return nil, fmt.Errorf("plugin \"%s\": %w", id, ErrNotWanted)
	}
	for {
		e, err := openTree(name, text, id)
		if err != nil {
			return nil, err
		}
		if e.entry == nil {
			break
		}
		text = e.remove()
	}
	after := maps.Clone(before.Plugins)
	delete(after, id)
	return checked(name, text, &Config{Platforms: before.Platforms, Plugins: after, Policy: before.Policy})
}

// checked reads the edited text back and compares it with what was meant.
func checked(name string, text []byte, want *Config) ([]byte, error) {
	c, err := ParseConfig(name, text)
	if err != nil {
		return nil, fmt.Errorf("the edit does not fit the file: %w", err)
	}
	if !reflect.DeepEqual(c, want) {
		return nil, fmt.Errorf("%s: the edit would change more than plugin entries; edit the file by hand", name)
	}
	return text, nil
}

// assignment is one member of an entry; value is "" when it is left out.
type assignment struct{ key, value string }

func members(w Wanted) []assignment {
	m := []assignment{{"source", quote(w.Source)}, {"version", ""}, {"scopes", ""}}
	if w.Version != "" {
		m[1].value = quote(w.Version)
	}
	if w.Scopes != nil {
		scopes := make([]string, len(w.Scopes))
		for i, s := range w.Scopes {
			scopes[i] = quote(s)
		}
		m[2].value = "[" + strings.Join(scopes, ", ") + "]"
	}
	return m
}

// changed reports whether the member means something else than in old.
func (a assignment) changed(old Wanted) bool { return !slices.Contains(members(old), a) }

// quote writes a basic TOML string; what it cannot write, checked refuses.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

func quoteKey(id string) string {
	if strings.Contains(id, ".") {
		return quote(id)
	}
	return id
}

// newline is the line end that the text uses.
func newline(text []byte) string {
	if i := bytes.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// appendPlugin adds a table at the end of the file or, where all plugins stand
// in one inline table, at the end of that.
func appendPlugin(doc *tomlstrict.Document, text []byte, id string, w Wanted) []byte {
	var set []string
	for _, m := range members(w) {
		if m.value != "" {
			set = append(set, m.key+" = "+m.value)
		}
	}
	if m := doc.Root.Member("plugins"); m != nil && m.Value.Inline() {
		entry := quoteKey(id) + " = { " + strings.Join(set, ", ") + " }"
		if all := leaves(m.Value); len(all) > 0 {
			return splice(text, all[len(all)-1].Value.End, all[len(all)-1].Value.End, ", "+entry)
		}
		return splice(text, m.Value.Start, m.Value.End, "{ "+entry+" }")
	}
	nl := newline(text)
	var b strings.Builder
	if !bytes.HasSuffix(text, []byte("\n")) {
		b.WriteString(nl)
	}
	b.WriteString(nl + "[plugins." + quoteKey(id) + "]" + nl)
	for _, line := range set {
		b.WriteString(line + nl)
	}
	return append(slices.Clone(text), b.String()...)
}

// entryEditor is a text, its tree and one plugin's entry in it. Each of its
// methods makes one change and returns the new text; offsets are then stale.
type entryEditor struct {
	text    []byte
	plugins *tomlstrict.Node     // the table of all plugins
	entry   *tomlstrict.Member   // nil when the plugin has none
	members []*tomlstrict.Member // the entry's, in the order of the text
	inline  *tomlstrict.Node     // the innermost inline table around the members, or nil
}

// open is openTree for a text that must be a valid configuration.
func open(name string, text []byte, id string) (*entryEditor, error) {
	if _, err := ParseConfig(name, text); err != nil {
		return nil, fmt.Errorf("the edit does not fit the file: %w", err)
	}
	return openTree(name, text, id)
}

// openTree finds an entry in any TOML text; half of it may be removed already.
func openTree(name string, text []byte, id string) (*entryEditor, error) {
	doc, err := tomlstrict.Parse(name, text, MaxConfigBytes)
	if err != nil {
		return nil, fmt.Errorf("the edit does not fit the file: %w", err)
	}
	e := &entryEditor{text: text}
	plugins := doc.Root.Member("plugins")
	if plugins == nil || plugins.Value.Member(id) == nil {
		return e, nil
	}
	e.plugins, e.entry = plugins.Value, plugins.Value.Member(id)
	e.members = slices.Clone(e.entry.Value.Members)
	slices.SortFunc(e.members, func(a, b *tomlstrict.Member) int { return a.Key - b.Key })
	switch {
	case e.entry.Value.Inline():
		e.inline = e.entry.Value
	case e.plugins.Inline():
		e.inline = e.plugins
	}
	return e, nil
}

// set gives a member a value, or removes it when value is "".
func (e *entryEditor) set(key, value string, changed bool) []byte {
	m := e.entry.Value.Member(key)
	switch {
	case !changed:
		return e.text
	case m != nil && value != "":
		return splice(e.text, m.Value.Start, m.Value.End, value)
	case m != nil && e.inline != nil:
		return removeLeaf(e.text, e.inline, m)
	case m != nil:
		start, end := lineStart(e.text, m.Key), lineEnd(e.text, m.Value.End)
		return splice(e.text, start, end, "")
	}
	// A new member follows the last one, with the same prefix and indentation.
	last := e.members[len(e.members)-1]
	line := string(e.text[last.Key:last.NameStart]) + key + " = " + value
	if e.inline != nil {
		return splice(e.text, last.Value.End, last.Value.End, ", "+line)
	}
	indent := string(e.text[lineStart(e.text, last.Key):last.Key])
	at := lineEnd(e.text, last.Value.End)
	if !bytes.HasSuffix(e.text[:at], []byte("\n")) {
		return splice(e.text, at, at, newline(e.text)+indent+line)
	}
	return splice(e.text, at, at, indent+line+newline(e.text))
}

// remove takes away the entry, or one member of an entry in dotted keys.
func (e *entryEditor) remove() []byte {
	switch {
	case e.entry.Value.Header():
		return e.removeSection()
	case e.entry.Value.Inline() && e.plugins.Inline():
		return removeLeaf(e.text, e.plugins, e.entry)
	case e.entry.Value.Inline():
		return splice(e.text, lineStart(e.text, e.entry.Key), lineEnd(e.text, e.entry.Value.End), "")
	}
	last := e.members[len(e.members)-1]
	if e.inline != nil {
		return removeLeaf(e.text, e.inline, last)
	}
	return splice(e.text, lineStart(e.text, last.Key), lineEnd(e.text, last.Value.End), "")
}

// removeSection takes away a header, its members, the comments directly above it
// and the empty lines after it, or before it at the end of the file.
func (e *entryEditor) removeSection() []byte {
	start, end := lineStart(e.text, e.entry.Value.Start), lineEnd(e.text, e.entry.Value.End)
	if len(e.members) > 0 {
		end = lineEnd(e.text, e.members[len(e.members)-1].Value.End)
	}
	for start > 0 {
		above := lineStart(e.text, start-1)
		if !bytes.HasPrefix(bytes.TrimLeft(e.text[above:start], " \t"), []byte("#")) {
			break
		}
		start = above
	}
	for end < len(e.text) && blankLine(e.text[end:lineEnd(e.text, end)]) {
		end = lineEnd(e.text, end)
	}
	for end == len(e.text) && start > 0 && blankLine(e.text[lineStart(e.text, start-1):start]) {
		start = lineStart(e.text, start-1)
	}
	return splice(e.text, start, end, "")
}

// leaves lists the members of an inline table in the order of the text, those of
// dotted keys in place of the tables they make.
func leaves(n *tomlstrict.Node) []*tomlstrict.Member {
	var all []*tomlstrict.Member
	for _, m := range n.Members {
		if m.Value.Kind == tomlstrict.Table && !m.Value.Inline() {
			all = append(all, leaves(m.Value)...)
		} else {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b *tomlstrict.Member) int { return a.Key - b.Key })
	return all
}

// removeLeaf takes a member out of an inline table together with one comma.
func removeLeaf(text []byte, table *tomlstrict.Node, m *tomlstrict.Member) []byte {
	all := leaves(table)
	i := slices.Index(all, m)
	switch {
	case i > 0:
		return splice(text, all[i-1].Value.End, m.Value.End, "")
	case len(all) > 1:
		return splice(text, m.Key, all[1].Key, "")
	}
	return splice(text, table.Start, table.End, "{}")
}

func splice(text []byte, start, end int, with string) []byte {
	return slices.Concat(text[:start], []byte(with), text[end:])
}

// lineStart is the offset of the line's first byte.
func lineStart(text []byte, at int) int { return bytes.LastIndexByte(text[:at], '\n') + 1 }

// lineEnd is the offset after the line's end.
func lineEnd(text []byte, at int) int {
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(text)
}

func blankLine(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 }
