package printers

import (
	"bufio"
	"io"
	"strings"
	"unicode/utf8"
)

// Aligner writes rows in columns: at least 6 wide, three spaces apart, the last one as it is. Widths only grow from one
// Flush to the next, so that later rows stay under the header where they can.
type Aligner struct {
	w      io.Writer
	rows   [][]string
	widths []int
}

// NewAligner returns an Aligner that writes to w.
func NewAligner(w io.Writer) *Aligner { return &Aligner{w: w} }

// Row adds a row. The cells are escaped, so that they are as wide as they look.
func (a *Aligner) Row(cells ...string) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = Escape(c)
	}
	a.rows = append(a.rows, row)
}

// Reset forgets the widths: a table of another kind follows.
func (a *Aligner) Reset() { a.widths = nil }

// Flush writes the rows that were added since the last Flush.
func (a *Aligner) Flush() error {
	const least, gap = 6, 3
	for _, row := range a.rows {
		for len(a.widths) < len(row)-1 {
			a.widths = append(a.widths, least)
		}
		for i := 0; i < len(row)-1; i++ {
			a.widths[i] = max(a.widths[i], utf8.RuneCountInString(row[i])+gap)
		}
	}
	b := bufio.NewWriter(a.w)
	for _, row := range a.rows {
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", a.widths[i]-utf8.RuneCountInString(cell)))
			}
		}
		b.WriteByte('\n')
	}
	a.rows = nil
	return b.Flush()
}
