package terminal

import (
	"fmt"
	"io"
	"strings"
	"time"

	"bonsai/pkg/story"
	"bonsai/pkg/termtext"
)

// maxTable bounds the steps of a table where not all are asked for.
const maxTable = 25

// Report draws where the time of many startups goes, as tables.
func Report(w io.Writer, r *story.Report, o Options) error {
	c := newCanvas(w, o)
	c.paragraph(r.Headline(), bold)
	if when := r.When(); when != "" {
		c.line(when, dim)
	}
	c.paragraphs(r.Summary.Asks())
	c.paragraphs(r.Notes)
	if len(r.Summary.Steps) > 0 {
		c.spreads(r)
	}
	if len(r.Changes) > 0 {
		c.changes(r)
	}
	if len(r.Summary.Slowest) > 0 {
		c.slowest(r)
	}
	return c.Flush()
}

// table writes rows: the first column to the left, the others to the right, each as wide as it needs. last is a column
// of texts to the left behind them, nil for none.
func (c *canvas) table(heads []string, rows [][]string, last bool) {
	right := len(heads) - 1
	if last {
		right--
	}
	widths := make([]int, len(heads))
	all := append([][]string{heads}, rows...)
	for _, row := range all {
		for i := range row {
			row[i] = c.plain(termtext.Line(row[i]))
			widths[i] = max(widths[i], termtext.Columns(row[i]))
		}
	}
	others := 0
	for _, n := range widths[1 : right+1] {
		others += n + 2
	}
	widths[0] = max(min(widths[0], c.width-others), 12)
	fmt.Fprintln(c)
	for n, row := range all {
		var b strings.Builder
		b.WriteString(termtext.Pad(termtext.Cut(row[0], widths[0], c.more()), widths[0]))
		for i := 1; i <= right; i++ {
			b.WriteString("  " + c.right(row[i], widths[i]))
		}
		if last {
			b.WriteString("  " + row[len(row)-1])
		}
		if n == 0 {
			c.line(b.String(), bold)
			continue
		}
		c.line(b.String())
	}
}

func (c *canvas) spreads(r *story.Report) {
	var rows [][]string
	row := func(s story.Spread) {
		name := s.Name
		if s.Gap {
			name = "(" + name + ")"
		}
		cells := []string{name, fmt.Sprint(s.Count)}
		for _, d := range []time.Duration{s.P50, s.P90, s.P99, s.Max} {
			cells = append(cells, story.Text(d, r.Resolution))
		}
		rows = append(rows, append(cells, story.Percent(s.Share)))
	}
	row(r.Summary.Total)
	steps, more, share := r.Summary.Rows(maxTable)
	if c.All {
		steps, more = r.Summary.Steps, 0
	}
	for _, s := range steps {
		row(s)
	}
	c.table([]string{"STEP", "COUNT", "P50", "P90", "P99", "MAX", "SHARE"}, rows, false)
	if more > 0 {
		c.line(story.More(more, share)+" (-o wide)", dim)
	}
}

func (c *canvas) changes(r *story.Report) {
	var rows [][]string
	for i, ch := range r.Changes {
		if i > maxTable && !c.All {
			break
		}
		p50, p90 := story.Signed(ch.P50(), 0), story.Signed(ch.Now.P90-ch.Then.P90, 0)
		switch {
		case ch.Then.Count == 0:
			p50, p90 = "new", ""
		case ch.Now.Count == 0:
			p50, p90 = "gone", ""
		}
		row := []string{ch.Name, known(ch.Then, ch.Then.P50, r), known(ch.Now, ch.Now.P50, r), p50,
			known(ch.Then, ch.Then.P90, r), known(ch.Now, ch.Now.P90, r), p90}
		rows = append(rows, row)
	}
	c.table([]string{"STEP", "P50 THEN", "NOW", "CHANGE", "P90 THEN", "NOW", "CHANGE"}, rows, false)
}

// known formats a time of a step, "-" if the step was not seen.
func known(s story.Spread, d time.Duration, r *story.Report) string {
	if s.Count == 0 {
		return "-"
	}
	return story.Text(d, r.Resolution)
}

func (c *canvas) slowest(r *story.Report) {
	var rows [][]string
	for _, s := range r.Summary.Slowest {
		rows = append(rows, []string{strings.TrimPrefix(story.Title(s.Object), "pod "),
			s.Start.UTC().Format("01-02 15:04:05"), story.Text(s.Duration, r.Resolution),
			s.Longest + " " + story.Text(s.LongTime, r.Resolution)})
	}
	c.table([]string{"SLOWEST", "CREATED", "READY", "MOST OF IT"}, rows, true)
}
