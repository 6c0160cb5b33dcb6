// Package render shows answers as text for people. It is pure: width, colours and time are the caller's.
package render

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"bonsai/pkg/why"
)

// Style is how a text looks.
type Style struct {
	// Width is where lines wrap, in columns; 0 wraps none. Commands are never wrapped: they are to be copied.
	Width int
	// Colour marks what matters with the escape sequences of a terminal.
	Colour bool
	// Now is what "3m ago" counts from.
	Now time.Time
	// Escape makes text of others safe for what shows it. All of an answer goes through it, since names and messages
	// are parts of most sentences.
	Escape func(string) string
}

// Text returns an answer as sentences: the state, the causes with theirs, and what could not be read.
func Text(a why.Answer, s Style) string {
	w := &writer{Style: s, namespace: a.Subject.Namespace}
	state := bold
	if a.Well {
		state = green
	}
	w.wrapped("", "", a.State, state)
	for i, c := range a.Causes {
		w.line("")
		w.cause(fmt.Sprintf("%d. ", i+1), "", c, 0)
	}
	if len(a.Unseen) > 0 {
		w.line("")
		w.wrapped("", "", "The answer may be wrong or incomplete, since not all could be read:", plain)
		for _, u := range a.Unseen {
			w.wrapped("- ", "  ", u, plain)
		}
	}
	return w.text.String()
}

// maxDepth bounds the chains that are shown. Explainers nest less; an answer that came as JSON may nest more.
const maxDepth = 16

// colour is the escape sequence that begins a colour.
type colour string

const (
	plain colour = ""
	bold  colour = "\x1b[1m"
	dim   colour = "\x1b[2m"
	green colour = "\x1b[32m"
	cyan  colour = "\x1b[36m"
	reset        = "\x1b[0m"
)

type writer struct {
	Style
	namespace string // of the subject: objects of others are shown with theirs
	text      strings.Builder
}

func (w *writer) line(text string) {
	w.text.WriteString(strings.TrimRight(text, " "))
	w.text.WriteByte('\n')
}

// cause writes a cause behind a label, and indented below it what belongs to it.
func (w *writer) cause(label, indent string, c why.Cause, depth int) {
	rest := indent + "   "
	w.wrapped(indent+label, indent+strings.Repeat(" ", len(label)), c.Text, bold)
	for _, e := range c.Evidence {
		w.wrapped(rest+"seen: ", rest+"      ", w.evidence(e), dim)
	}
	for _, f := range c.Fixes {
		w.fix(rest, f)
	}
	if depth == maxDepth {
		return
	}
	for _, b := range c.Because {
		w.cause("because: ", rest, b, depth+1)
	}
}

func (w *writer) evidence(e why.Evidence) string {
	text := w.object(e.Object)
	if e.Field == "" {
		text += " " + cmp.Or(e.Value, "does not exist")
	} else {
		text += " " + e.Field
		if e.Value != "" {
			text += " = " + quoted(e.Value)
		}
	}
	if e.Time != nil {
		text += " (" + when(w.Now.Sub(*e.Time)) + ")"
	}
	return text
}

// when says when something is, by how long ago it was: "3m ago", or "in 28s" for what is to come. Clocks of two
// machines differ by little.
func when(ago time.Duration) string {
	if ago <= -time.Second {
		return "in " + duration.HumanDuration(-ago)
	}
	return duration.HumanDuration(max(0, ago)) + " ago"
}

// quoted puts a value that has blanks into quotes, as a sentence would.
func quoted(value string) string {
	if strings.ContainsAny(value, " \t\n") {
		return `"` + value + `"`
	}
	return value
}

func (w *writer) object(o why.Object) string {
	name := strings.ToLower(o.Kind) + "/" + o.Name
	if o.Namespace != "" && o.Namespace != w.namespace {
		name += " (namespace " + o.Namespace + ")"
	}
	return name
}

func (w *writer) fix(indent string, f why.Fix) {
	if f.Command == "" {
		w.wrapped(indent+"try: ", indent+"     ", f.Text, plain)
		return
	}
	w.wrapped(indent+"try: ", indent+"     ", strings.TrimRight(f.Text, ".:")+":", plain)
	w.line(indent + "     " + w.painted(w.escaped(string(f.Command)), cyan))
}

func (w *writer) escaped(text string) string {
	if w.Escape == nil {
		return text
	}
	return w.Escape(text)
}

func (w *writer) painted(text string, c colour) string {
	if !w.Colour || c == plain || text == "" {
		return text
	}
	return string(c) + text + reset
}

// leastText is how many columns of text a line has at least, however narrow the terminal and deep the chain.
const leastText = 24

// wrapped writes a text whose first line begins with label and whose others begin with indent.
func (w *writer) wrapped(label, indent, text string, c colour) {
	width := 0
	if w.Width > 0 {
		width = max(w.Width-len(indent), leastText)
	}
	begin := label
	for _, l := range wrap(w.escaped(text), width) {
		w.line(begin + w.painted(l, c))
		begin = indent
	}
}

// wrap breaks a text at blanks into lines of at most width columns, 0 for no bound. A longer word keeps a line of its
// own whole, since a broken name cannot be copied. A text without words is one empty line.
func wrap(text string, width int) (lines []string) {
	var line strings.Builder
	columns := 0
	for _, word := range strings.Fields(text) {
		n := len([]rune(word))
		if columns > 0 && width > 0 && columns+1+n > width {
			lines = append(lines, line.String())
			line.Reset()
			columns = 0
		}
		if columns > 0 {
			line.WriteByte(' ')
			columns++
		}
		line.WriteString(word)
		columns += n
	}
	return append(lines, line.String())
}
