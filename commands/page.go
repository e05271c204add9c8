package commands

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/switchyard-plugins/switchyard/commands/render"
)

// A page collects a command's text. Arguments of its methods are foreign strings
// unless they are render.Safe.
type page struct {
	out   *bytes.Buffer
	width int // cells; 0: not a terminal, cut and wrap nothing
	style render.Style
}

// line writes one formatted line.
func (p *page) line(format string, args ...any) {
	p.out.WriteString(render.Format(format, args...))
	p.out.WriteByte('\n')
}

// title writes a line that opens a part.
func (p *page) title(s string) { p.line("%s", p.style.Mark(render.Strong, s)) }

// fieldWidth is the column at which a field's value begins.
const fieldWidth = 18

// field writes a label and its value; nothing is cut. On a terminal, words break
// onto lines under the value; a value that is one word too long for the space after
// the label, as a digest is, gets a line of its own.
func (p *page) field(label, format string, args ...any) {
	value := render.Format(format, args...)
	fits := p.width == 0 || fieldWidth+render.Width(value) <= p.width
	if fits || !strings.Contains(value, " ") {
		p.exact(label, value)
		return
	}
	pad := strings.Repeat(" ", max(1, fieldWidth-2-render.Width(label)))
	under := strings.Repeat(" ", fieldWidth)
	for i, l := range render.Wrap(value, p.width-fieldWidth) {
		if i == 0 {
			p.line("  %s%s%s", p.style.Mark(render.Faint, label), render.Safe(pad), render.Safe(l))
			continue
		}
		p.line("%s%s", render.Safe(under), render.Safe(l))
	}
}

// exact is field for a value, already safe, in which every character counts: it
// stands on a line of its own where it does not fit, and is never broken.
func (p *page) exact(label, value string) {
	pad := strings.Repeat(" ", max(1, fieldWidth-2-render.Width(label)))
	if p.width == 0 || fieldWidth+render.Width(value) <= p.width {
		p.line("  %s%s%s", p.style.Mark(render.Faint, label), render.Safe(pad), render.Safe(value))
		return
	}
	if label != "" {
		p.line("  %s", p.style.Mark(render.Faint, label))
	}
	p.line("    %s", render.Safe(value))
}

// prose writes a paragraph of the program's own words, indented and wrapped.
func (p *page) prose(indent int, s string) {
	width := p.width
	if width == 0 {
		width = proseWidth
	}
	pad := strings.Repeat(" ", indent)
	for _, l := range render.Wrap(s, width-indent) {
		p.line("%s%s", render.Safe(pad), l)
	}
}

// hanging writes a formatted line after a label of indent cells. On a terminal it
// breaks between words, and further lines begin under the first one's text.
func (p *page) hanging(label render.Safe, indent int, format string, args ...any) {
	text := render.Format(format, args...)
	lines := []string{text}
	if p.width > 0 && indent+render.Width(text) > p.width {
		lines = render.Wrap(text, p.width-indent)
	}
	for _, l := range lines {
		p.line("%s%s", label, render.Safe(l))
		label = render.Safe(strings.Repeat(" ", indent))
	}
}

// document writes JSON, indented and safe to show.
func (p *page) document(v jsontext.Value) {
	shown := v.Clone()
	if err := shown.Indent(jsontext.WithIndent("  "), jsontext.EscapeForJS(true)); err != nil {
		p.line("%s", v)
		return
	}
	p.out.Write(render.JSON(shown))
	p.out.WriteByte('\n')
}

// proseWidth is where prose breaks when there is no terminal to measure.
const proseWidth = 80

// table writes a table.
func (p *page) table(t render.Table) {
	t.Style = p.style
	for _, l := range t.Lines(p.width) {
		p.out.WriteString(l)
		p.out.WriteByte('\n')
	}
}

// nextAll writes the commands to type, one after the other.
func (p *page) nextAll(commands []string) {
	for _, c := range commands {
		p.next(c)
	}
}

// next writes the command to type, alone on its line and uncut.
func (p *page) next(command string) {
	p.line("")
	p.line("%s %s", p.style.Mark(render.Faint, "Next:"), render.Safe(command))
}
