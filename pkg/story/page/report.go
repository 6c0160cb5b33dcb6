package page

import (
	"fmt"
	"io"
	"time"

	"bonsai/pkg/story"
)

// maxSteps bounds the rows of a picture of many startups, and of the table with it.
const maxSteps = 40

// ReportHTML writes a page about many startups.
func ReportHTML(w io.Writer, r *story.Report) error {
	p := &pen{w: w}
	p.begin(r.Headline())
	if when := r.When(); when != "" {
		p.put("<p>%s</p>\n", text(when, maxText))
	}
	p.notes(append(r.Summary.Asks(), r.Notes...))
	p.report(r)
	p.end("")
	return p.err
}

// report writes the picture and the tables.
func (p *pen) report(r *story.Report) {
	if len(r.Summary.Steps) > 0 {
		p.put("<div class=\"wide\">\n")
		p.open(reportHeight(r)-headline, r.Title)
		p.spreads(r, -headline)
		p.put("</svg>\n</div>\n")
		p.table([]string{"step", "count", "p50", "p90", "p99", "max", "share"}, spreadRows(r))
	}
	if len(r.Changes) > 0 {
		p.put("<h2>Now against then</h2>\n")
		p.table([]string{"step", "p50 then", "p50 now", "change", "p90 then", "p90 now"}, changeRows(r))
	}
	if len(r.Summary.Slowest) > 0 {
		p.put("<h2>Slowest</h2>\n")
		var rows [][]string
		for _, s := range r.Summary.Slowest {
			rows = append(rows, []string{story.Title(s.Object), s.Start.UTC().Format("2006-01-02 15:04:05"),
				story.Text(s.Duration, r.Resolution), s.Longest + " " + story.Text(s.LongTime, r.Resolution)})
		}
		p.table([]string{"pod", "created", "ready after", "most of it"}, rows)
	}
}

func spreadRows(r *story.Report) [][]string {
	var rows [][]string
	steps, more, share := r.Summary.Rows(maxSteps - 2)
	for _, s := range append([]story.Spread{r.Summary.Total}, steps...) {
		row := []string{s.Name, fmt.Sprint(s.Count)}
		for _, d := range []time.Duration{s.P50, s.P90, s.P99, s.Max} {
			row = append(row, story.Text(d, r.Resolution))
		}
		rows = append(rows, append(row, story.Percent(s.Share)))
	}
	if more > 0 {
		rows = append(rows, []string{story.More(more, share), "", "", "", "", "", story.Percent(share)})
	}
	return rows
}

func changeRows(r *story.Report) [][]string {
	var rows [][]string
	for _, c := range r.Changes {
		change := story.Signed(c.P50(), 0)
		if c.Then.Count == 0 {
			change = "new"
		} else if c.Now.Count == 0 {
			change = "gone"
		}
		rows = append(rows, []string{c.Name, known(c.Then, c.Then.P50, r), known(c.Now, c.Now.P50, r), change,
			known(c.Then, c.Then.P90, r), known(c.Now, c.Now.P90, r)})
	}
	return rows
}

// known formats a time of a step, "–" if the step was not seen.
func known(s story.Spread, d time.Duration, r *story.Report) string {
	if s.Count == 0 {
		return "–"
	}
	return story.Text(d, r.Resolution)
}

// table writes a table whose first column names its rows.
func (p *pen) table(heads []string, rows [][]string) {
	p.put("<table>\n<thead><tr>")
	for i, h := range heads {
		p.put("<th scope=\"col\"%s>%s</th>", number(i), text(h, maxText))
	}
	p.put("</tr></thead>\n<tbody>\n")
	for _, row := range rows {
		p.put("<tr><th scope=\"row\">%s</th>", text(row[0], maxText))
		for i, cell := range row[1:] {
			p.put("<td%s>%s</td>", number(i+1), text(cell, maxText))
		}
		p.put("</tr>\n")
	}
	p.put("</tbody>\n</table>\n")
}

func number(column int) string {
	if column == 0 {
		return ""
	}
	return ` class="n"`
}

// ReportSVG draws the steps of many startups: a thick bar up to the median, a thin one up to the 90th percentile.
func ReportSVG(w io.Writer, r *story.Report) error {
	p := &pen{w: w}
	notes := append([]string{r.When()}, append(r.Summary.Asks(), r.Notes...)...)
	height := reportHeight(r) + rowHeight*len(notes)
	p.open(height, r.Headline())
	p.put("<style>%s</style>\n<rect class=\"paper\" width=\"%d\" height=\"%d\"/>\n", style, width, height)
	p.label(12, 26, "head", r.Headline(), maxTitle)
	p.spreads(r, 0)
	for i, n := range notes {
		p.label(12, reportHeight(r)+rowHeight*(i+1)-6, "soft", n, maxTitle+40)
	}
	p.put("</svg>\n")
	return p.err
}

func reportHeight(r *story.Report) int {
	steps, more, _ := r.Summary.Rows(maxSteps - 2)
	return headHeight + rowHeight*(1+len(steps)+min(more, 1))
}

// spreads draws the bars, below the headline at top.
func (p *pen) spreads(r *story.Report, top int) {
	p.label(labelWidth, top+headHeight-10, "soft", "thick: the median, thin: the 90th percentile, share of the critical paths", maxTitle)
	steps, more, share := r.Summary.Rows(maxSteps - 2)
	all := append([]story.Spread{r.Summary.Total}, steps...)
	longest := time.Duration(1)
	for _, s := range all {
		longest = max(longest, s.P90)
	}
	p.put("<g role=\"list\" aria-label=\"steps\">\n")
	for i, s := range all {
		y := top + headHeight + rowHeight*i
		to := func(d time.Duration) float64 { return labelWidth + barWidth*float64(d)/float64(longest) }
		told := fmt.Sprintf("%s: %d times, half within %s, nine of ten within %s, the longest %s, %s of the critical paths",
			s.Name, s.Count, story.Text(s.P50, r.Resolution), story.Text(s.P90, r.Resolution),
			story.Text(s.Max, r.Resolution), story.Percent(s.Share))
		p.put("<g role=\"listitem\" aria-label=\"%s\"><title>%s</title>", text(told, maxText), text(told, maxText))
		p.label(24, y+rowHeight-6, "on", s.Name, maxLabel)
		class := "c0"
		if s.Gap {
			class = "gap"
		}
		p.bar(class, labelWidth, to(s.P90), y+9, 4)
		p.bar(class, labelWidth, to(s.P50), y+4, 14)
		p.put("<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text></g>\n", width-12, y+rowHeight-6,
			text(story.Text(s.P50, r.Resolution)+" / "+story.Text(s.P90, r.Resolution)+" · "+story.Percent(s.Share),
				maxLabel))
	}
	p.put("</g>\n")
	if more > 0 {
		p.label(24, top+headHeight+rowHeight*(len(all)+1)-6, "soft", story.More(more, share), maxLabel)
	}
}
