package main

import (
	"encoding/json"
	"fmt"
	"io"

	"bonsai/pkg/plainjson"
	"bonsai/pkg/story"
	"bonsai/pkg/story/page"
	text "bonsai/pkg/story/terminal"
)

// usual is the width of text that goes into no terminal.
const usual = 100

// options say how text is drawn.
func (q *question) options() text.Options {
	o := text.Options{Width: q.width, ASCII: q.out.ascii, All: q.output == "wide"}
	if o.Width == 0 {
		o.Width = q.out.columns
	}
	if o.Width == 0 {
		o.Width = usual
	}
	o.Color = q.color == "always" || q.color == "auto" && q.out.columns > 0 && !q.out.plain
	return o
}

// life is a story with what its pods have in common, as -o json has them.
type life struct {
	Kind string `json:"kind"`
	*story.Story
	Pods *story.Report `json:"pods,omitempty"`
}

// showStory shows the life of one object. pods sums up those of a workload, nil for any other object.
func (q *question) showStory(s *story.Story, pods *story.Report) error {
	w := q.out.Out
	switch q.output {
	case "json":
		return encode(w, life{"Story", s, pods})
	case "html":
		return page.HTML(w, s, pods)
	case "svg":
		return page.SVG(w, s)
	}
	if err := text.Story(w, s, q.options()); err != nil || pods == nil {
		return err
	}
	fmt.Fprintln(w)
	return text.Report(w, pods, q.options())
}

func (q *question) showReport(r *story.Report) error {
	w := q.out.Out
	switch q.output {
	case "json":
		return encode(w, struct {
			Kind string `json:"kind"`
			*story.Report
		}{"Report", r})
	case "html":
		return page.ReportHTML(w, r)
	case "svg":
		return page.ReportSVG(w, r)
	}
	return text.Report(w, r, q.options())
}

// encode writes JSON, in which no control character of others is left.
func encode(w io.Writer, what any) error {
	doc, err := json.MarshalIndent(what, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(plainjson.Escape(doc), '\n'))
	return err
}
