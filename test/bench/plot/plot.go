package main

import (
	"errors"
	"fmt"
	"html"
	"regexp"
	"strconv"
	"strings"
)

// measured is a figure of both sides.
type measured struct {
	ours, peer float64
	unit       string
}

// line is one of the bench's table: name, ours, peer, ours/peer, unit. A name has no two spaces in a row.
var line = regexp.MustCompile(`^ *(\S+(?: \S+)*) {2,}([-+.e\d]+) {2,}([-+.e\d]+) {2,}[-+.\d]+ {2,}(\S.*?) *$`)

// parse reads what the bench prints. What is measured within a load ("server CPU for each") is called after the load:
// "get, 16 clients: …".
func parse(text string) map[string]measured {
	all := map[string]measured{}
	load := ""
	for l := range strings.Lines(text) {
		m := line.FindStringSubmatch(strings.TrimRight(l, "\n"))
		if m == nil {
			continue
		}
		name := m[1]
		if strings.HasSuffix(name, "CPU for each") {
			name = load + ": CPU"
		} else {
			load = name
		}
		ours, err := strconv.ParseFloat(m[2], 64)
		peer, err2 := strconv.ParseFloat(m[3], 64)
		if errors.Join(err, err2) == nil {
			all[name] = measured{ours, peer, m[4]}
		}
	}
	return all
}

// shown are the figures of the picture, of all of which less is better, and what they are called there.
var shown = []struct{ name, label string }{
	{"exec to /readyz 200", "kube-apiserver ready"},
	{"idle RSS", "… its memory, idle"},
	{"RSS after all this", "… after the load of 5,000 pods"},
	{"create, 16 clients: CPU", "… CPU of a create"},
	{"get, 16 clients: CPU", "… of a get"},
	{"merge-patch, 16 clients: CPU", "… of a merge patch"},
	{"list all as JSON, 2 clients: CPU", "… of a list of 5,000 pods, JSON"},
	{"list all as protobuf, 2 clients: CPU", "… of the same, protobuf"},
	{"1,000 nodes / 3,000 pods: CPU", "kube-scheduler, CPU of a pod"},
	{"create to Running, p50 of 20", "pod, from create to Running"},
	{"Deployment of 30, all available", "Deployment of 30 available"},
}

// Measures of the picture in pixels.
const (
	width    = 760
	labels   = 250
	bars     = 330
	row      = 30
	headroom = 56
)

// draw makes the picture; a figure that was not measured is an error.
func draw(all map[string]measured) (string, error) {
	var b strings.Builder
	text := func(x, y int, class, s string) {
		fmt.Fprintf(&b, `<text x="%d" y="%d" class="%s">%s</text>`+"\n", x, y, class, html.EscapeString(s))
	}
	height := headroom + row*len(shown) + 10
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="Figures of Bonsai beside Kubernetes">`+"\n", width, height, width, height)
	b.WriteString(`<style>text{font:13px sans-serif;fill:#24292f}.value{font-size:11px}.title{font-weight:bold}.label{text-anchor:end}</style>` + "\n")
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	text(labels, 20, "title", "Less is better; each pair in its own scale")
	fmt.Fprintf(&b, `<rect x="%d" y="31" width="12" height="12" fill="#2f7d4f"/><rect x="%d" y="31" width="12" height="12" fill="#b9c0c8"/>`+"\n", labels, labels+90)
	text(labels+18, 42, "value", "Bonsai")
	text(labels+108, 42, "value", "Kubernetes v1.36.3, same machine")
	for i, s := range shown {
		m, there := all[s.name]
		if !there || m.peer <= 0 || m.ours < 0 {
			return "", fmt.Errorf("%q was not measured on both sides", s.name)
		}
		longest := max(m.ours, m.peer)
		y := headroom + row*i
		text(labels-10, y+16, "label", s.label)
		for j, bar := range []struct {
			value float64
			color string
		}{{m.ours, "#2f7d4f"}, {m.peer, "#b9c0c8"}} {
			long := max(1, int(bar.value/longest*bars))
			fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="10" fill="%s"/>`+"\n", labels, y+j*12, long,
				bar.color)
			said := fmt.Sprintf("%.3g %s", bar.value, m.unit)
			if j == 0 {
				said += fmt.Sprintf(" (%.1f × less)", m.peer/m.ours)
			}
			text(labels+long+6, y+9+j*12, "value", said)
		}
	}
	b.WriteString("</svg>\n")
	return b.String(), nil
}
