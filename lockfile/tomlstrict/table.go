package tomlstrict

import (
	"slices"
	"strings"
)

// A TableReader reads the members of one table by their exact names and records
// a fault for whatever does not fit: absent or of another kind, and at Close
// every member that was not asked for.
type TableReader struct {
	doc   *Document
	node  *Node
	where string   // how messages call the table, as `[[plugin]] "repo-facts"`
	known []string // names asked for so far
}

// A Value is a string of the text and the byte where it starts.
type Value struct {
	Text   string
	Offset int
}

// Read starts reading a table; where is how messages name it.
func (d *Document) Read(n *Node, where string) *TableReader {
	return &TableReader{doc: d, node: n, where: where}
}

// Rename changes how later messages name the table, once its name is known.
func (t *TableReader) Rename(where string) { t.where = where }

// Where is how messages name the table.
func (t *TableReader) Where() string { return t.where }

// Node is the table that is read.
func (t *TableReader) Node() *Node { return t.node }

// Optional returns the value of the named member, or nil when it is absent or,
// which is a fault, of another kind.
func (t *TableReader) Optional(name string, kind Kind) *Node {
	t.known = append(t.known, name)
	m := t.node.Member(name)
	if m == nil {
		return nil
	}
	if m.Value.Kind != kind {
		t.doc.Faultf(m.Value.Start, "\"%s\" must be %v, not %v", name, kind, m.Value.Kind)
		return nil
	}
	return m.Value
}

// Required is Optional, where absence is a fault at the table.
func (t *TableReader) Required(name string, kind Kind) *Node {
	n := t.Optional(name, kind)
	if t.node.Member(name) == nil && t.misspelt(name) == nil {
		t.doc.Faultf(t.node.Start, "%s: \"%s\" is missing", t.where, name)
	}
	return n
}

// Has reports whether the member exists, in exactly this spelling or, which
// Close reports as a fault, in another case.
func (t *TableReader) Has(name string) bool {
	return t.node.Member(name) != nil || t.misspelt(name) != nil
}

// Text is Required or Optional for a string; ok is false when there is none.
func (t *TableReader) Text(name string, required bool) (v Value, ok bool) {
	read := t.Optional
	if required {
		read = t.Required
	}
	n := read(name, String)
	if n == nil {
		return Value{}, false
	}
	return Value{n.Text, n.Start}, true
}

// Texts reads an array of at most limit strings. Elements of another kind are
// faults and are left out; ok is false when there is no array.
func (t *TableReader) Texts(name string, required bool, limit int) (values []Value, ok bool) {
	read := t.Optional
	if required {
		read = t.Required
	}
	n := read(name, Array)
	if n == nil {
		return nil, false
	}
	if len(n.Items) > limit {
		t.doc.FaultCause(n.Start, ErrTooLarge, "\"%s\" has %d elements; at most %d are allowed", name, len(n.Items), limit)
		return nil, false
	}
	for _, item := range n.Items {
		if item.Kind != String {
			t.doc.Faultf(item.Start, "\"%s\" must hold strings, not %v", name, item.Kind)
			continue
		}
		values = append(values, Value{item.Text, item.Start})
	}
	return values, true
}

// Tables reads an optional array of at most limit tables, as [[name]] makes it.
func (t *TableReader) Tables(name string, limit int) []*Node {
	n := t.Optional(name, Array)
	if n == nil {
		return nil
	}
	if len(n.Items) > limit {
		t.doc.FaultCause(n.Items[limit].Start, ErrTooLarge, "more than %d tables \"%s\"", limit, name)
		return nil
	}
	var tables []*Node
	for _, item := range n.Items {
		if item.Kind != Table {
			t.doc.Faultf(item.Start, "\"%s\" must hold tables, not %v", name, item.Kind)
			continue
		}
		tables = append(tables, item)
	}
	return tables
}

// Close records a fault for every member that was not asked for.
func (t *TableReader) Close() {
	for _, m := range t.node.Members {
		if slices.Contains(t.known, m.Name) {
			continue
		}
		if right := t.folds(m.Name); right != "" {
			t.doc.Faultf(m.NameStart, "%s: unknown member \"%s\"; names are case-sensitive: write \"%s\"", t.where, m.Name, right)
			continue
		}
		t.doc.Faultf(m.NameStart, "%s: unknown member \"%s\"; known are %s", t.where, m.Name, strings.Join(t.known, ", "))
	}
}

// misspelt finds a member whose name differs from name in case only.
func (t *TableReader) misspelt(name string) *Member {
	for _, m := range t.node.Members {
		if m.Name != name && strings.EqualFold(m.Name, name) {
			return m
		}
	}
	return nil
}

// folds returns the known name that differs from name in case only, or "".
func (t *TableReader) folds(name string) string {
	for _, k := range t.known {
		if strings.EqualFold(k, name) {
			return k
		}
	}
	return ""
}
