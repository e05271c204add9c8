package conformance

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// Protocol names the protocol that a case speaks.
type Protocol string

const (
	Session Protocol = "session/1"
	Call    Protocol = "switchyard.plugin/v1"
)

// A Case is one file of the corpus: what must happen, by which rules, and the
// steps that show it. docs/conformance.md describes the format.
type Case struct {
	Name     string // group/name
	Group    string
	Title    string   // what must happen, one sentence
	Rules    []string // S-… of docs/protocol-session.md, or C-… of a heading of docs/protocol-call.md
	Source   string   // the section that the rules come from
	Protocol Protocol
	Any      bool          // it holds for every package, not only the corpus's own
	Unix     bool          // frames run over a Unix socket, not over stdin and stdout
	Deadline time.Duration // of the whole case
	Manifest []edit        // changes to the package, in order
	Steps    []step
	Text     string // the file as it stands
}

// An edit is one indented line: the path of a member, and what it is to be.
type edit struct {
	line int
	path string
	text string
}

// A step is one line of a case with the lines indented below it.
type step struct {
	line  int
	verb  string
	text  string // what follows the verb
	edits []edit
	block []step // of repeat
}

func (s step) String() string { return strings.TrimSpace(s.verb + " " + s.text) }

// A ParseError says what is wrong with a case, and where.
type ParseError struct {
	File    string
	Line    int
	Message string
}

func (e *ParseError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message) }

const (
	caseSuffix      = ".case"
	defaultDeadline = 20 * time.Second
)

// Parse reads one case. name is its path in the corpus, such as
// "sequence/repeat.case"; its directory is the group.
func Parse(name, text string) (*Case, error) {
	p := &parser{file: name, labels: []string{defaultLabel}}
	c := &Case{Name: strings.TrimSuffix(name, caseSuffix), Group: path.Dir(name), Protocol: Session, Deadline: defaultDeadline, Text: text}
	err := p.parse(c, text)
	if err != nil {
		return nil, err
	}
	return c, nil
}

type parser struct {
	file   string
	labels []string
}

func (p *parser) fail(line int, format string, args ...any) error {
	return &ParseError{p.file, line, fmt.Sprintf(format, args...)}
}

func (p *parser) parse(c *Case, text string) error {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	at := 0
	for ; at < len(lines) && lines[at] != ""; at++ {
		if err := p.header(c, at+1, lines[at]); err != nil {
			return err
		}
	}
	switch {
	case c.Title == "":
		return p.fail(1, "the first line is \"# \" and a sentence that says what must happen")
	case len(c.Rules) == 0:
		return p.fail(at, "no rule is named; write \"rule S-…\"")
	case c.Any && len(c.Manifest) > 0:
		return p.fail(at, "a case for any package changes none")
	case c.Source == "":
		return p.fail(at, "no source is named; write \"source …\"")
	}
	var open []*[]step // the blocks that the next step goes into, outermost first
	open = append(open, &c.Steps)
	for ; at < len(lines); at++ {
		number, line := at+1, lines[at]
		trimmed := strings.TrimSpace(line)
		steps := open[len(open)-1]
		switch {
		case trimmed == "" || strings.HasPrefix(trimmed, "#"):
		case line[0] == ' ' || line[0] == '\t':
			if len(*steps) == 0 {
				return p.fail(number, "an indented line belongs to a step, and there is none before it")
			}
			of := &(*steps)[len(*steps)-1]
			name, value, _ := strings.Cut(trimmed, " ")
			of.edits = append(of.edits, edit{number, name, strings.TrimSpace(value)})
		case trimmed == "done":
			if len(open) == 1 {
				return p.fail(number, "done without repeat")
			}
			open = open[:len(open)-1]
		default:
			verb, rest, _ := strings.Cut(trimmed, " ")
			*steps = append(*steps, step{line: number, verb: verb, text: strings.TrimSpace(rest)})
			if verb == "repeat" {
				open = append(open, &(*steps)[len(*steps)-1].block)
			}
		}
	}
	if len(open) > 1 {
		return p.fail(len(lines), "repeat without done")
	}
	if len(c.Steps) == 0 {
		return p.fail(len(lines), "no steps follow the header; a blank line ends the header")
	}
	return p.check(c, c.Steps)
}

func (p *parser) header(c *Case, number int, line string) error {
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	if rest == "" {
		return p.fail(number, "%q needs a value", word)
	}
	switch word {
	case "#":
		if c.Title != "" {
			c.Title += " "
		}
		c.Title += rest
	case "rule":
		for _, r := range strings.Fields(rest) {
			if slices.Contains(c.Rules, r) {
				return p.fail(number, "rule %s is named twice", r)
			}
			c.Rules = append(c.Rules, r)
		}
	case "source":
		c.Source = rest
	case "protocol":
		switch rest {
		case "session":
			c.Protocol = Session
		case "call":
			c.Protocol = Call
		default:
			return p.fail(number, "protocol is session or call, not %q", rest)
		}
	case "package":
		if rest != "any" {
			return p.fail(number, "the only other package is any, not %q", rest)
		}
		c.Any = true
	case "transport":
		if rest != "unix" {
			return p.fail(number, "the only other transport is unix, not %q", rest)
		}
		c.Unix = true
	case "deadline":
		d, err := time.ParseDuration(rest)
		if err != nil || d <= 0 {
			return p.fail(number, "%q is no duration", rest)
		}
		c.Deadline = d
	case "manifest", "schema":
		verb, value, _ := strings.Cut(rest, " ")
		if _, known := packageEdits.get()[word+" "+verb]; !known {
			return p.fail(number, "%q changes nothing of a package", word+" "+verb)
		}
		c.Manifest = append(c.Manifest, edit{number, word + " " + verb, strings.TrimSpace(value)})
	default:
		return p.fail(number, "%q is no line of a header; a blank line ends the header", word)
	}
	return nil
}

// check holds each step to what its verb takes, so that a mistake in a case is
// found when the corpus is read, not when the case happens to run.
func (p *parser) check(c *Case, steps []step) error {
	for i := range steps {
		s := &steps[i]
		v, ok := verbs()[s.verb]
		if !ok {
			return p.fail(s.line, "%q is no step", s.verb)
		}
		if v.protocol != "" && v.protocol != c.Protocol {
			return p.fail(s.line, "%q is a step of the protocol %s", s.verb, v.protocol)
		}
		if len(s.edits) > 0 && !v.edits {
			return p.fail(s.edits[0].line, "%q takes no indented lines", s.verb)
		}
		if v.check != nil {
			if err := v.check(p, s); err != nil {
				return p.fail(s.line, "%s: %v", s.verb, err)
			}
		}
		if v.matches {
			for _, e := range s.edits {
				if e.path == "within" {
					if _, err := time.ParseDuration(e.text); err != nil {
						return p.fail(e.line, "%v", err)
					}
					continue
				}
				if _, err := parseMatcher(e.text); err != nil {
					return p.fail(e.line, "%v", err)
				}
			}
		}
		if err := p.check(c, s.block); err != nil {
			return err
		}
	}
	return nil
}
