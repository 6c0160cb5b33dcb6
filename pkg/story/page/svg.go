// Package page draws stories as SVG, and as HTML pages of one file: they need no network and no scripts, follow the
// reader's choice of dark or light, and can be read by screen readers. All texts of others are escaped.
package page

import (
	"fmt"
	"html"
	"io"
	"strings"
	"time"

	"bonsai/pkg/story"
	"bonsai/pkg/termtext"
)

// Measures of a picture, in pixels.
const (
	width      = 960
	labelWidth = 270
	barWidth   = 520
	barEnd     = labelWidth + barWidth
	rowHeight  = 22
	headHeight = 64
	// headline is the part of headHeight that a page has no need for: it has headings of its own.
	headline = 34
	// maxLabel is how many characters a label has room for, maxTitle a headline, and maxText any other text.
	maxLabel = 30
	maxTitle = 95
	maxText  = 500
)

// colours is how many colours components have; the styles have as many.
const colours = 8

// text prepares a text of others: characters that XML has not become visible, what is too long is cut, and nothing of
// it is markup.
func text(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r == 0xfffe || r == 0xffff {
			return 0xfffd
		}
		return r
	}, termtext.Line(s))
	return html.EscapeString(termtext.Cut(s, most, "…"))
}

// style has both sets of colours. A bar on the critical path is thick and one beside it thin, so that colours are no
// more than a help.
const style = `
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#5f6b7a;--line:#d5dae1;--page:#fff;--bad:#b3261e;--gap:#9aa4b2;--c0:#1f6feb;--c1:#1a7f37;--c2:#9a6700;--c3:#8250df;--c4:#bf3989;--c5:#0b7285;--c6:#bc4c00;--c7:#57606a}
@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9aa7b4;--line:#343c46;--page:#0d1117;--bad:#ff7b72;--gap:#6e7a88;--c0:#79b8ff;--c1:#56d364;--c2:#e3b341;--c3:#d2a8ff;--c4:#ff9bce;--c5:#56d4dd;--c6:#ffa657;--c7:#aab4be}}
svg{font:13px system-ui,sans-serif}
svg .paper{fill:var(--page)}
svg text{fill:var(--ink)}
svg .soft{fill:var(--soft)}
svg .on{font-weight:600}
svg .head{font-size:16px;font-weight:600}
svg .bad{fill:var(--bad)}
svg .gap{fill:var(--gap)}
svg .grid{stroke:var(--line)}
svg .c0{fill:var(--c0)}svg .c1{fill:var(--c1)}svg .c2{fill:var(--c2)}svg .c3{fill:var(--c3)}
svg .c4{fill:var(--c4)}svg .c5{fill:var(--c5)}svg .c6{fill:var(--c6)}svg .c7{fill:var(--c7)}
`

// pen writes a picture or a page, and remembers the first error.
type pen struct {
	w   io.Writer
	err error
}

// put writes a piece of markup. The arguments are numbers, or texts that are escaped already.
func (p *pen) put(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

// SVG draws all phases of a life, one below the other.
func SVG(w io.Writer, s *story.Story) error {
	p := &pen{w: w}
	height := rowHeight
	for _, phase := range s.Phases {
		height += phaseHeight(phase)
	}
	height += rowHeight * len(s.Notes)
	p.open(height, s.Title())
	p.put("<style>%s</style>\n<rect class=\"paper\" width=\"%d\" height=\"%d\"/>\n", style, width, height)
	y := 0
	for _, phase := range s.Phases {
		p.label(12, y+26, "head", s.Title()+": "+phase.Headline(s.Resolution), maxTitle)
		p.phase(s, phase, y)
		y += phaseHeight(phase)
	}
	if len(s.Phases) == 0 {
		p.label(12, rowHeight-6, "head", s.Title()+": no steps are known", maxTitle)
		y = rowHeight
	}
	for i, n := range s.Notes {
		p.label(12, y+rowHeight*(i+1)-6, "soft", n, maxTitle+40)
	}
	p.put("</svg>\n")
	return p.err
}

func (p *pen) open(height int, title string) {
	p.put("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"100%%\" role=\"group\" aria-label=\"%s\">\n"+
		"<title>%s</title>\n", width, height, text(title, maxText), text(title, maxText))
}

// phaseHeight is how high the picture of a phase is.
func phaseHeight(p *story.Phase) int {
	lines, hidden := p.Lines(false)
	if hidden > 0 {
		hidden = 1
	}
	return headHeight + rowHeight*(len(lines)+hidden) + rowHeight/2
}

// scale is where times are in a picture.
type scale struct{ from, to time.Time }

func (s scale) x(t time.Time) float64 {
	total := s.to.Sub(s.from)
	if total <= 0 {
		return labelWidth
	}
	at := float64(t.Sub(s.from)) / float64(total)
	return labelWidth + barWidth*min(max(at, 0), 1)
}

// phase draws one phase, below the headline at y.
func (p *pen) phase(s *story.Story, phase *story.Phase, y int) {
	from, to := phase.Extent()
	x := scale{from, to}
	lines, hidden := phase.Lines(false)
	p.label(labelWidth, y+headHeight-10, "soft", "0", maxLabel)
	end := x.x(phase.End)
	p.put("<text class=\"soft\" x=\"%.1f\" y=\"%d\" text-anchor=\"end\">%s</text>\n", end, y+headHeight-10,
		text(story.Text(phase.Duration(), s.Resolution), maxLabel))
	bottom := y + headHeight + rowHeight*len(lines)
	for _, at := range []float64{labelWidth, end} {
		p.put("<line class=\"grid\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>\n", at, y+headHeight-4, at, bottom)
	}
	p.put("<g role=\"list\" aria-label=\"steps\">\n")
	colour := map[string]int{}
	for i := range lines {
		p.row(&lines[i], x, y+headHeight+rowHeight*i, colour, s.Resolution, phase)
	}
	p.put("</g>\n")
	if hidden > 0 {
		p.label(24, bottom+rowHeight-6, "soft", fmt.Sprintf("%d short steps are not drawn", hidden), maxTitle)
	}
}

// row draws one line with its top at y.
func (p *pen) row(l *story.Line, x scale, y int, colour map[string]int, resolution time.Duration, phase *story.Phase) {
	if l.Heading != "" {
		p.label(12, y+rowHeight-6, "soft", l.Heading, maxLabel)
		return
	}
	class, name := "gap", l.Name
	if l.Step != nil {
		n, ok := colour[l.Step.Component]
		if !ok {
			n = len(colour) % colours
			colour[l.Step.Component] = n
		}
		class = fmt.Sprintf("c%d", n)
		if l.Step.Error != "" {
			class = "bad"
		}
	}
	told := describe(l, resolution, phase)
	p.put("<g role=\"listitem\" aria-label=\"%s\"><title>%s</title>", text(told, maxText), text(told, maxText))
	on := "soft"
	if len(l.Critical) > 0 {
		on = "on"
	}
	p.label(24+12*l.Depth, y+rowHeight-6, on, name, maxLabel-2*l.Depth)
	for _, s := range l.Bars() {
		if !s.Start.After(x.to) {
			p.bar(class, x.x(s.Start), x.x(s.End()), y+9, 4)
		}
	}
	for _, s := range l.Critical {
		if s.Duration > 0 {
			p.bar(class, x.x(s.Start), x.x(s.End()), y+4, 14)
		}
	}
	share := ""
	if d := l.OnPath(); d > 0 {
		share = " · " + story.Percent(phase.Share(d))
	}
	p.put("<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text></g>\n", width-12, y+rowHeight-6,
		text(story.Text(l.Duration, resolution)+share, maxLabel))
}

// describe says all of a line in words.
func describe(l *story.Line, resolution time.Duration, phase *story.Phase) string {
	parts := []string{l.Name + ", " + story.Text(l.Duration, resolution) + " from " +
		story.Text(max(l.Start.Sub(phase.Start), 0), 0)}
	if l.Step != nil {
		parts[0] = l.Step.Name + strings.TrimPrefix(parts[0], l.Name)
		if m := story.Meaning(l.Step.Name); m != "" {
			parts = append(parts, m)
		}
		if l.Step.Detail != "" {
			parts = append(parts, l.Step.Detail)
		}
		if l.Step.Error != "" {
			parts = append(parts, "failed: "+l.Step.Error)
		}
	}
	if d := l.OnPath(); d > 0 {
		parts = append(parts, story.Percent(phase.Share(d))+" of the critical path")
	}
	return strings.Join(parts, "; ")
}

// bar draws a bar, at least wide enough to be seen.
func (p *pen) bar(class string, from, to float64, y, height int) {
	wide := max(to-from, 1.5)
	from = min(from, barEnd-wide)
	p.put("<rect class=\"%s\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" rx=\"1\"/>", class, from, y, wide, height)
}

func (p *pen) label(x, y int, class, s string, most int) {
	p.put("<text class=\"%s\" x=\"%d\" y=\"%d\">%s</text>\n", class, x, y, text(s, most))
}
