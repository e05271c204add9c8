package render

// Safe is text that went through Text already and may hold the colours of a
// Style. Only this package and literals of the program make one.
type Safe string

// A Mark is a meaning that a Style shows as a colour.
type Mark string

const (
	Plain  Mark = ""
	Strong Mark = "1"
	Faint  Mark = "2"
	Good   Mark = "32"
	Warn   Mark = "33"
	Bad    Mark = "1;31"
)

// A Style marks text by what it means. The zero value leaves everything without
// colour.
type Style struct{ Colour bool }

// Mark returns the foreign string s escaped and coloured.
func (s Style) Mark(m Mark, text string) Safe { return s.paint(m, Safe(Text(text))) }

func (s Style) paint(m Mark, text Safe) Safe {
	if !s.Colour || m == Plain || text == "" {
		return text
	}
	return "\x1b[" + Safe(m) + "m" + text + "\x1b[0m"
}
