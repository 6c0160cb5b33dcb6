package terminal

import (
	"fmt"
	"strings"
	"time"

	"bonsai/pkg/story"
	"bonsai/pkg/termtext"
)

// Columns of a waterfall beside the label and the bar: a time and a share.
const (
	timeColumns  = 8
	shareColumns = 5
)

// waterfall draws the steps of a phase, each with its bar, its time and its share of the critical path.
func (c *canvas) waterfall(p *story.Phase, resolution time.Duration) {
	lines, hidden := p.Lines(c.All)
	label := c.labelColumns(lines)
	from, to := p.Extent()
	b := &bars{from: from, to: to, cells: max(c.width-label-timeColumns-shareColumns-2, 8), ascii: c.ASCII}
	if p.Done && to.After(p.End) {
		b.ready = b.half(p.End) / 2
	} else {
		b.ready = -1
	}
	fmt.Fprintln(c)
	c.axis(p, b, label, resolution)
	colour := map[string]string{}
	for i := range lines {
		l := &lines[i]
		if l.Heading != "" {
			fmt.Fprintln(c, c.paint(c.text(l.Heading, c.width), c.colourOf(colour, l.Component)))
			continue
		}
		c.row(l, b, label, c.styleOf(colour, l), resolution, p)
	}
	if hidden > 0 {
		c.line(fmt.Sprintf("  %d short steps are not shown (-o wide)", hidden), dim)
	}
}

// labelColumns is how many columns labels get: as many as the longest needs, but not at the cost of the bars.
func (c *canvas) labelColumns(lines []story.Line) int {
	n := 12
	for i := range lines {
		if lines[i].Heading == "" {
			n = max(n, termtext.Columns(c.label(&lines[i])))
		}
	}
	most := c.width / 3
	if c.All { // details stand beside the names
		most = c.width * 2 / 5
	}
	return min(n, most)
}

// label is a step's mark, its name by its depth and, if all is shown, its detail.
func (c *canvas) label(l *story.Line) string {
	mark := " "
	switch {
	case l.Step != nil && l.Step.Error != "":
		mark = "!"
	case len(l.Critical) > 0 && c.ASCII:
		mark = "*"
	case len(l.Critical) > 0:
		mark = "●"
	}
	s := mark + " " + strings.Repeat("  ", l.Depth) + l.Name
	if c.All && l.Step != nil && l.Step.Detail != "" {
		s += " " + l.Step.Detail
	}
	return termtext.Line(s)
}

// axis is the line above the bars: where they begin, and where the object was ready.
func (c *canvas) axis(p *story.Phase, b *bars, label int, resolution time.Duration) {
	total := c.plain(story.Text(p.Duration(), resolution))
	at := b.half(p.End) / 2
	left := max(at-termtext.Columns(total), 2)
	s := strings.Repeat(" ", label+1) + "0" + strings.Repeat(" ", left-1) + total
	c.line(termtext.Pad(s, label+b.cells+2)+c.right("time", timeColumns-1)+c.right("share", shareColumns+1), dim)
}

func (c *canvas) row(l *story.Line, b *bars, label int, style []string, resolution time.Duration, p *story.Phase) {
	name := c.label(l)
	if c.ASCII {
		name = c.plain(name)
	}
	name = termtext.Pad(termtext.Cut(name, label, c.more()), label)
	if len(l.Critical) > 0 {
		name = c.paint(name, bold)
	}
	share := ""
	if on := l.OnPath(); on > 0 {
		share = story.Percent(p.Share(on))
	}
	if share != "" {
		share = c.right(share, shareColumns+1)
	}
	fmt.Fprintf(c, "%s %s %s%s\n", name, c.paint(b.draw(l), style...), c.time(l.Duration, resolution, timeColumns-1),
		share)
	if l.Step != nil && l.Step.Error != "" {
		c.failure(l.Step.Error, strings.Repeat(" ", 4+2*l.Depth))
	}
}

// maxFailure bounds the lines of a failure: what counts often stands at the end of its message.
const maxFailure = 3

// failure writes the message of a failure below its step.
func (c *canvas) failure(message, indent string) {
	width := c.width - len(indent)
	lines := wrap(c.plain(termtext.Line(message)), width)
	if len(lines) > maxFailure {
		lines[maxFailure-1] = c.text(strings.Join(lines[maxFailure-1:], " "), width)
		lines = lines[:maxFailure]
	}
	for _, l := range lines {
		fmt.Fprintln(c, c.paint(indent+l, alarm))
	}
}

// colourOf is the colour of a component, the next one for a component that has none yet.
func (c *canvas) colourOf(colour map[string]string, component string) string {
	if colour[component] == "" {
		colour[component] = colours[len(colour)%len(colours)]
	}
	return colour[component]
}

func (c *canvas) styleOf(colour map[string]string, l *story.Line) []string {
	if l.Step == nil {
		return []string{dim}
	}
	if l.Step.Error != "" {
		return []string{alarm}
	}
	return []string{c.colourOf(colour, l.Step.Component)}
}

// bars draws bars with half a cell as the smallest piece.
type bars struct {
	from, to time.Time
	cells    int
	ascii    bool
	// ready is the cell with the mark of the phase's end, -1 for none.
	ready int
}

// half is where t is, in halves of cells.
func (b *bars) half(t time.Time) int {
	total := b.to.Sub(b.from)
	if total <= 0 {
		return 0
	}
	at := float64(t.Sub(b.from)) / float64(total) * float64(2*b.cells)
	return min(max(int(at+0.5), 0), 2*b.cells)
}

// What a half of a cell shows.
const (
	empty = iota
	beside
	critical
)

// draw returns the bar of a line: thick where the line is on the critical path, thin elsewhere.
func (b *bars) draw(l *story.Line) string {
	halves := make([]int, 2*b.cells)
	fill := func(from, to time.Time, what int) {
		first, last := b.half(from), b.half(to)
		first = min(first, len(halves)-1)
		for i := first; i < max(last, first+1); i++ {
			halves[i] = max(halves[i], what)
		}
	}
	for _, s := range l.Bars() {
		if !s.Start.After(b.to) {
			fill(s.Start, s.End(), beside)
		}
	}
	for _, s := range l.Critical {
		if s.Duration > 0 {
			fill(s.Start, s.End(), critical)
		}
	}
	var out strings.Builder
	for i := range b.cells {
		cell := b.cell(halves[2*i], halves[2*i+1])
		if cell == " " && i == b.ready {
			cell = "│"
			if b.ascii {
				cell = "|"
			}
		}
		out.WriteString(cell)
	}
	return out.String()
}

// cell is the character for two halves.
func (b *bars) cell(left, right int) string {
	if b.ascii {
		return []string{" ", "-", "#"}[max(left, right)]
	}
	switch {
	case left == critical && right == critical:
		return "█"
	case left == critical:
		return "▌"
	case right == critical:
		return "▐"
	case left == beside && right == beside:
		return "━"
	case left == beside:
		return "╸"
	case right == beside:
		return "╺"
	}
	return " "
}

// small is the share below which parts of a critical path are joined.
const small = 0.01

// path lists what the critical path consists of.
func (c *canvas) path(p *story.Phase, resolution time.Duration) {
	least := small
	if c.All {
		least = 0
	}
	parts, others, rest := story.Main(story.Parts(p), least)
	if len(parts)+others == 0 {
		return
	}
	fmt.Fprintln(c)
	c.line("Critical path", bold)
	for _, s := range parts {
		text := s.Name
		if s.Step != nil && s.Step.Detail != "" {
			text += " " + s.Step.Detail
		}
		switch meaning := story.Meaning(s.Name); {
		case s.Step != nil && s.Step.Error != "":
			text += ": " + s.Step.Error
		case meaning != "" && !s.Gap:
			text += ": " + meaning
		}
		c.share(s.Duration, s.Share, text, s.Gap, resolution)
	}
	if others > 0 {
		c.share(rest, p.Share(rest), fmt.Sprintf("%d shorter parts", others), true, resolution)
	}
}

func (c *canvas) share(d time.Duration, share float64, text string, faint bool, resolution time.Duration) {
	s := c.time(d, resolution, timeColumns+1) + c.right(story.Percent(share), shareColumns+1) + "  "
	text = c.text(text, c.width-termtext.Columns(s))
	if faint {
		text = c.paint(text, dim)
	}
	fmt.Fprintln(c, s+text)
}
