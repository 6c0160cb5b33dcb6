package page

import (
	"io"
	"time"

	"bonsai/pkg/story"
)

// pageStyle is of what is around the pictures.
const pageStyle = `
body{margin:2rem auto;max-width:64rem;padding:0 1rem;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}
.notes{color:var(--soft);border-left:3px solid var(--line);padding-left:1rem}
.wide{overflow-x:auto}
table{border-collapse:collapse}
th,td{text-align:left;padding:.15rem .9rem .15rem 0;border-bottom:1px solid var(--line);vertical-align:top;overflow-wrap:anywhere}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
td.bad{color:var(--bad)}
footer{margin-top:2rem;color:var(--soft);font-size:.85rem}
`

// begin writes everything above the content. The policy keeps a page from loading or running anything, should a text
// ever get around the escaping.
func (p *pen) begin(title string) {
	p.put("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"+
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"+
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>%s</title>\n<style>%s%s</style>\n"+
		"</head>\n<body>\n<main>\n<h1>%s</h1>\n", text(title, maxText), style, pageStyle, text(title, maxText))
}

func (p *pen) end(origin string) {
	p.put("</main>\n")
	if origin != "" {
		p.put("<footer>Read from %s.</footer>\n", text(origin, maxText))
	}
	p.put("</body>\n</html>\n")
}

func (p *pen) notes(notes []string) {
	if len(notes) == 0 {
		return
	}
	p.put("<ul class=\"notes\">\n")
	for _, n := range notes {
		p.put("<li>%s</li>\n", text(n, maxText))
	}
	p.put("</ul>\n")
}

// HTML writes a page about one life, and about the pods of it if it is that of a workload: report may be nil.
func HTML(w io.Writer, s *story.Story, report *story.Report) error {
	p := &pen{w: w}
	p.begin(s.Title())
	p.notes(s.Notes)
	if len(s.Phases) == 0 {
		p.put("<p>No steps are known.</p>\n")
	}
	for _, phase := range s.Phases {
		p.put("<section>\n<h2>%s</h2>\n<p>From <time datetime=\"%s\">%s</time></p>\n<div class=\"wide\">\n",
			text(phase.Headline(s.Resolution), maxText),
			phase.Start.UTC().Format(time.RFC3339Nano), phase.Start.UTC().Format("2006-01-02 15:04:05.000 UTC"))
		p.open(phaseHeight(phase)-headline, s.Title()+", "+phase.Name)
		p.phase(s, phase, -headline)
		p.put("</svg>\n</div>\n")
		p.path(phase, s.Resolution)
		p.put("</section>\n")
	}
	if report != nil {
		p.put("<section>\n<h2>%s</h2>\n", text(report.Headline(), maxText))
		p.report(report)
		p.put("</section>\n")
	}
	p.end(s.Origin)
	return p.err
}

// path is the critical path as a table.
func (p *pen) path(phase *story.Phase, resolution time.Duration) {
	parts, others, rest := story.Main(story.Parts(phase), 0)
	if len(parts) == 0 {
		return
	}
	p.put("<h2>Critical path</h2>\n<table>\n<thead><tr><th scope=\"col\" class=\"n\">time</th><th scope=\"col\" class=\"n\">share</th>" +
		"<th scope=\"col\">step</th><th scope=\"col\">what it is</th></tr></thead>\n<tbody>\n")
	for _, s := range parts {
		detail, meaning, class := "", story.Meaning(s.Name), ""
		if s.Step != nil {
			detail = " " + s.Step.Detail
			if s.Step.Error != "" {
				meaning, class = "failed: "+s.Step.Error, " class=\"bad\""
			}
		}
		if s.Gap {
			meaning = "no step ran"
		}
		p.put("<tr><td class=\"n\">%s</td><td class=\"n\">%s</td><td>%s</td><td%s>%s</td></tr>\n",
			text(story.Text(s.Duration, resolution), maxText), text(story.Percent(s.Share), maxText),
			text(s.Name+detail, maxText), class, text(meaning, maxText))
	}
	if others > 0 {
		p.put("<tr><td class=\"n\">%s</td><td class=\"n\">%s</td><td>%d shorter parts</td><td></td></tr>\n",
			text(story.Text(rest, resolution), maxText), text(story.Percent(phase.Share(rest)), maxText), others)
	}
	p.put("</tbody>\n</table>\n")
}
