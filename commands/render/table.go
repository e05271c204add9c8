package render

import "strings"

// A Column describes one column of a Table.
type Column struct {
	Title string
	Right bool // aligned to the right: numbers
	// Fixed columns are never cut: identifiers and digests, whose half is worth nothing.
	Fixed bool
	// Wrap continues what does not fit on further lines, instead of cutting it.
	Wrap bool
}

// A Table lays rows out in columns. Cells are foreign strings: the table escapes
// them. Paint, where set, says what the cell of a row and column means.
type Table struct {
	Columns []Column
	Rows    [][]string
	Style   Style
	Paint   func(row, column int) Mark // nil: plain
}

const gap = 2 // cells between columns

// narrowest is the width below which a column is not cut.
const narrowest = 8

// Lines returns the table's lines, the titles first. Within width cells it cuts the
// widest columns that are not fixed; width < 1 means that nothing is cut.
func (t Table) Lines(width int) []string {
	rows := make([][]string, len(t.Rows))
	for n, row := range t.Rows {
		rows[n] = make([]string, len(row))
		for i, cell := range row {
			rows[n][i] = Text(cell)
		}
	}
	titles := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		titles[i] = c.Title
	}
	cells := naturalWidths(titles, rows)
	if width > 0 {
		t.shrink(cells, width)
	}
	lines := make([]string, 0, len(rows)+1)
	lines = append(lines, t.line(titles, cells, func(int) Mark { return Strong }))
	for n, row := range rows {
		mark := func(column int) Mark {
			if t.Paint == nil {
				return Plain
			}
			return t.Paint(n, column)
		}
		for _, piece := range t.pieces(row, cells) {
			lines = append(lines, t.line(piece, cells, mark))
		}
	}
	return lines
}

// pieces splits a row into the lines that it takes.
func (t Table) pieces(row []string, cells []int) [][]string {
	out := [][]string{row}
	for i, cell := range row {
		if !t.Columns[i].Wrap || Width(cell) <= cells[i] {
			continue
		}
		for n, part := range fill(cell, cells[i]) {
			if n == 0 {
				row = append([]string(nil), row...)
				out[0] = row
			} else if n == len(out) {
				out = append(out, make([]string, len(row)))
			}
			out[n][i] = part
		}
	}
	return out
}

// fill is Wrap for a column: a word that is longer than a line is broken.
func fill(s string, cells int) []string {
	var out []string
	for _, line := range Wrap(s, cells) {
		for Width(line) > cells {
			head := strings.TrimSuffix(Cut(line, cells+1), "…")
			out = append(out, head)
			line = line[len(head):]
		}
		out = append(out, line)
	}
	return out
}

func naturalWidths(titles []string, rows [][]string) []int {
	cells := make([]int, len(titles))
	for i, title := range titles {
		cells[i] = Width(title)
		for _, row := range rows {
			cells[i] = max(cells[i], Width(row[i]))
		}
	}
	return cells
}

func (t Table) shrink(cells []int, width int) {
	total := gap * (len(cells) - 1)
	for _, c := range cells {
		total += c
	}
	for total > width {
		widest := -1
		for i, c := range cells {
			if !t.Columns[i].Fixed && c > narrowest && (widest < 0 || c > cells[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		cells[widest]--
		total--
	}
}

func (t Table) line(row []string, cells []int, mark func(column int) Mark) string {
	var b strings.Builder
	size := 0
	for i := range row {
		size += cells[i] + gap
	}
	b.Grow(size)
	pad := func(n int) {
		for range n {
			b.WriteByte(' ')
		}
	}
	for i, cell := range row {
		if i > 0 {
			pad(gap)
		}
		cell = Cut(cell, cells[i])
		shown := string(t.Style.paint(mark(i), Safe(cell)))
		free := cells[i] - Width(cell)
		if t.Columns[i].Right {
			pad(free)
			b.WriteString(shown)
			continue
		}
		b.WriteString(shown)
		if i < len(row)-1 {
			pad(free)
		}
	}
	return strings.TrimRight(b.String(), " ")
}
