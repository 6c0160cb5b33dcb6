// Package terminal draws stories as text: a waterfall with a line for each step, and tables. All texts of others are
// escaped for terminals and cut to their columns.
package terminal

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"

	"bonsai/pkg/story"
	"bonsai/pkg/termtext"
)

// Bounds of a terminal's width. Below the least nothing can be read; a wider picture than the most shows no more.
const (
	minWidth = 40
	maxWidth = 400
)

// Options say what the terminal can do.
type Options struct {
	// Width is the number of columns.
	Width int
	// Color allows escape sequences for colours.
	Color bool
	// ASCII avoids all characters that a terminal without Unicode does not have.
	ASCII bool
	// All shows short steps and details too.
	All bool
}

// canvas writes lines of one width.
type canvas struct {
	*bufio.Writer
	Options
	width int
}

func newCanvas(w io.Writer, o Options) *canvas {
	return &canvas{Writer: bufio.NewWriter(w), Options: o, width: min(max(o.Width, minWidth), maxWidth)}
}

// colours of components, in the order in which they appear. Red is for errors.
var colours = []string{"96", "92", "93", "95", "94", "32", "33", "35", "34"}

const (
	bold  = "1"
	dim   = "2"
	alarm = "31"
)

// paint returns s in a style, if there are colours.
func (c *canvas) paint(s string, style ...string) string {
	if !c.Color || s == "" {
		return s
	}
	return "\x1b[" + strings.Join(style, ";") + "m" + s + "\x1b[0m"
}

// more is what ends a text that was cut.
func (c *canvas) more() string {
	if c.ASCII {
		return "~"
	}
	return "…"
}

// text prepares a text of others for n columns.
func (c *canvas) text(s string, n int) string {
	return termtext.Cut(c.plain(termtext.Line(s)), n, c.more())
}

// plain replaces what ASCII does not have by question marks, if only that is allowed.
func (c *canvas) plain(s string) string {
	if !c.ASCII {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == 'µ':
			return 'u'
		case r > 0x7e:
			return '?'
		}
		return r
	}, s)
}

// line writes s, which has no colours, cut to the width.
func (c *canvas) line(s string, style ...string) {
	fmt.Fprintln(c, c.paint(strings.TrimRight(c.text(s, c.width), " "), style...))
}

// time is a duration, right-aligned in n columns.
func (c *canvas) time(d, resolution time.Duration, n int) string {
	return c.right(story.Text(d, resolution), n)
}

func (c *canvas) right(s string, n int) string {
	s = c.plain(s)
	return strings.Repeat(" ", max(n-termtext.Columns(s), 0)) + s
}

// Story draws one life: a waterfall of each phase, and what its critical path consists of.
func Story(w io.Writer, s *story.Story, o Options) error {
	c := newCanvas(w, o)
	for i, p := range s.Phases {
		if i > 0 {
			fmt.Fprintln(c)
		}
		began := p.Start.UTC().Format("2006-01-02 15:04:05")
		c.paragraph(s.Title()+": "+p.Headline(s.Resolution)+" ("+began+" UTC)", bold)
		if i == 0 {
			c.notes(s)
		}
		c.waterfall(p, s.Resolution)
		c.path(p, s.Resolution)
	}
	if len(s.Phases) == 0 {
		c.line(s.Title()+": no steps are known", bold)
		c.notes(s)
	}
	return c.Flush()
}

// notes says where the steps are from and what is missing, in whole lines.
func (c *canvas) notes(s *story.Story) { c.paragraphs(s.Notes) }

func (c *canvas) paragraphs(notes []string) {
	for _, n := range notes {
		c.paragraph(n, dim)
	}
}

// paragraph writes a text in as many lines as it needs.
func (c *canvas) paragraph(s, style string) {
	for _, l := range wrap(c.plain(termtext.Line(s)), c.width) {
		fmt.Fprintln(c, c.paint(l, style))
	}
}

// wrap breaks a text at its spaces. A word that is longer than a line is cut.
func wrap(s string, n int) []string {
	var out []string
	line := ""
	for _, word := range strings.Fields(s) {
		word = termtext.Cut(word, n, "~")
		switch {
		case line == "":
			line = word
		case termtext.Columns(line)+1+termtext.Columns(word) <= n:
			line += " " + word
		default:
			out, line = append(out, line), word
		}
	}
	if line != "" {
		out = append(out, line)
	}
	return out
}
