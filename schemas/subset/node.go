package subset

import (
	"regexp"

	"github.com/switchyard-plugins/switchyard/schemas/format"
)

// A node is one compiled subschema. The zero node takes everything.
type node struct {
	pointer string // of the subschema in its document
	never   bool   // the schema false
	types   kinds  // 0: any

	enum    []scalar // nil: any
	allowed string   // the enum, for messages

	number     bool // has a keyword for numbers
	minimum    *float64
	maximum    *float64
	above      *float64
	below      *float64
	multipleOf float64 // 0: any

	text      bool // has a keyword for strings
	minLength int
	maxLength int // -1: any
	pattern   *regexp.Regexp
	format    string
	formed    func([]byte) bool

	array    bool // has a keyword for arrays
	prefix   []*node
	items    *node
	minItems int
	maxItems int // -1: any
	unique   bool

	object     bool           // has a keyword for objects
	index      map[string]int // of every name that a keyword names
	names      []string
	properties []*node // by index; nil where the name is not in properties
	required   []int
	dependent  [][]int // by index
	additional *node
	nameSchema *node
	minMembers int
	maxMembers int // -1: any

	allOf   []*node // $ref included
	anyOf   []*node
	oneOf   []*node
	not     *node
	ifNode  *node
	thenN   *node
	elseN   *node
	redact  bool
	private bool   // a widget says so
	secret  bool   // a reference to one may stand here
	initial []byte // the default
}

// inPlace returns the subschemas that meet the same value.
func (n *node) inPlace() []*node {
	var all []*node
	all = append(append(append(all, n.allOf...), n.anyOf...), n.oneOf...)
	for _, m := range []*node{n.not, n.ifNode, n.thenN, n.elseN} {
		if m != nil {
			all = append(all, m)
		}
	}
	return all
}

// kinds is a set of JSON types.
type kinds uint8

const (
	isNull kinds = 1 << iota
	isBoolean
	isObject
	isArray
	isNumber
	isInteger
	isString
)

var kindNames = []string{"null", "boolean", "object", "array", "number", "integer", "string"}

func (k kinds) String() string {
	s := ""
	for i, name := range kindNames {
		if k&(1<<i) != 0 {
			if s != "" {
				s += " or "
			}
			s += name
		}
	}
	return s
}

// A scalar is a value of an enum.
type scalar struct {
	kind   byte // '"' '0' 't' 'f' 'n'
	text   string
	number float64
}

// formed returns what holds a string to a format, nil for an unknown one. Every known
// format is asserted.
func formed(name string) func([]byte) bool {
	switch name {
	case "base64url":
		return format.Base64URL[[]byte]
	case "date-time":
		return format.DateTime[[]byte]
	case "decimal":
		return format.Decimal[[]byte]
	case "int64":
		return format.Int64[[]byte]
	case "uri":
		return format.URI[[]byte]
	case "uuid":
		return format.UUID[[]byte]
	}
	return nil
}
