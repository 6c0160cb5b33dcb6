package page

import (
	"bytes"
	"encoding/xml"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"bonsai/api/traces"
	"bonsai/pkg/story"
	"bonsai/pkg/story/storytest"
)

// report sums up some startups beside earlier ones.
func report() *story.Report {
	stories := func(n int, slower float64) (out []*story.Story) {
		for _, t := range storytest.Pods(n, slower) {
			out = append(out, story.New(t, "traces.bonsai.io", 0))
		}
		return out
	}
	r := &story.Report{Title: "pods of namespace default", From: storytest.Zero(),
		To: storytest.Zero().AddDate(0, 0, 1), Notes: []string{"a note <of> ours"},
		Summary: story.Summarize(stories(9, 200), 3)}
	r.Changes = story.Compare(story.Summarize(stories(5, 50), 0), r.Summary)
	return r
}

func of(t *traces.Trace) *story.Story { return story.New(t, "traces.bonsai.io", 0) }

// documents are all pictures and pages, by the files that record them.
func documents(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	draw := func(name string, f func(io.Writer) error) {
		var b bytes.Buffer
		if err := f(&b); err != nil {
			t.Fatal(err)
		}
		out[name] = b.String()
	}
	for name, trace := range map[string]*traces.Trace{"pod": storytest.Pod(), "failing": storytest.Failing(),
		"hostile": storytest.Hostile(), "nothing": {Object: traces.Object{Kind: "Pod", Name: "x"}}} {
		draw(name+".svg", func(w io.Writer) error { return SVG(w, of(trace)) })
		draw(name+".html", func(w io.Writer) error { return HTML(w, of(trace), nil) })
	}
	draw("report.svg", func(w io.Writer) error { return ReportSVG(w, report()) })
	draw("report.html", func(w io.Writer) error { return ReportHTML(w, report()) })
	return out
}

// TestDocuments: the pictures and pages are as recorded.
func TestDocuments(t *testing.T) {
	t.Parallel()
	for name, got := range documents(t) {
		storytest.Golden(t, name, got)
	}
}

// outside matches what a document could load or run.
var outside = regexp.MustCompile(`(?i)<(script|img|iframe|link|object|embed|image|use|a|form|foreignObject)\b|\son\w+\s*=\s*["']|url\(|@import|javascript:`)

// elements are what pages and pictures consist of. Any other came out of a text.
var elements = strings.Fields("svg title style rect text line g html head meta body main h1 h2 p ul li section time div table thead tbody tr th td footer")

// TestSafe: a document is well-formed, loads and runs nothing, and the texts of others make no elements.
func TestSafe(t *testing.T) {
	t.Parallel()
	for name, doc := range documents(t) {
		markup := regexp.MustCompile(`(aria-label)="[^"]*"|>[^<]*<`).ReplaceAllString(doc, `$1><`)
		if found := outside.FindString(markup); found != "" {
			t.Errorf("%s has %q", name, found)
		}
		control := func(r rune) bool { return r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || r == 0x202e }
		if i := strings.IndexFunc(doc, control); i >= 0 {
			t.Errorf("%s has a control character: %.40q", name, doc[i:])
		}
		html := strings.NewReplacer("<!DOCTYPE html>", "", "<meta charset=\"utf-8\">", "") // which XML does not have
		d := xml.NewDecoder(strings.NewReader(html.Replace(doc)))
		d.Strict = strings.HasSuffix(name, ".svg")
		d.AutoClose = []string{"meta"}
		for {
			token, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Errorf("%s is not well-formed: %v", name, err)
				break
			}
			if start, ok := token.(xml.StartElement); ok && !slices.Contains(elements, start.Name.Local) {
				t.Errorf("%s has an element %s", name, start.Name.Local)
			}
		}
	}
}

// TestAccessible: what is drawn is said too, each picture and each step has a name.
func TestAccessible(t *testing.T) {
	t.Parallel()
	doc := documents(t)["pod.html"]
	for _, want := range []string{`<html lang="en">`, `role="group" aria-label="pod default/web-6d4cf56db6-x2x9p, startup"`,
		`role="list" aria-label="steps"`, `aria-label="kubelet.pull, 1.20s from 534ms; an image is pulled; web nginx:1.27; 50% of the critical path"`,
		"prefers-color-scheme:dark", `<th scope="col">`} {
		if !strings.Contains(doc, want) {
			t.Errorf("lacks %s", want)
		}
	}
	// Beside the steps, the page and the two pictures have a title.
	if n, m := strings.Count(doc, `role="listitem"`), strings.Count(doc, "<title>"); m != n+3 {
		t.Errorf("%d steps and %d titles", n, m)
	}
}

// TestLong: a text of a megabyte takes no megabyte.
func TestLong(t *testing.T) {
	t.Parallel()
	trace := storytest.Failing()
	trace.Spans[3].Error = strings.Repeat("x<", 1<<19)
	for _, f := range []func(io.Writer) error{
		func(w io.Writer) error { return SVG(w, of(trace)) },
		func(w io.Writer) error { return HTML(w, of(trace), nil) },
	} {
		var b bytes.Buffer
		if err := f(&b); err != nil || b.Len() > 64<<10 {
			t.Errorf("%d bytes, %v", b.Len(), err)
		}
	}
}
