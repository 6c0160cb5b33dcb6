package preflight

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
)

// Level is how much a finding matters.
type Level int

// The levels, in the order of their weight.
const (
	// OK is something that the cluster needs and the machine has.
	OK Level = iota
	// Note is something that only a few pods need, and that the machine lacks. `bonsai up` does not mention it.
	Note
	// Warning is something that makes pods fail later, or that may.
	Warning
	// Missing is something without which no cluster can start.
	Missing
)

func (l Level) String() string {
	return [...]string{OK: "ok", Note: "note", Warning: "warning", Missing: "missing"}[l]
}

// Finding is what one rule has to say about a machine.
type Finding struct {
	Level   Level
	Subject string // what was looked at, in a word or two
	Text    string // what was found and, if it is not good, what needs it
	Run     string // the command that mends it, if there is one
}

// String returns the finding's text with the command that mends it.
func (f Finding) String() string {
	if f.Run == "" {
		return f.Text
	}
	return f.Text + " (run: " + f.Run + ")"
}

// Refused returns a finding for each error: each says what of the wanted cluster this machine cannot give.
func Refused(subject string, errs ...error) []Finding {
	var found []Finding
	for _, err := range errs {
		if err != nil {
			found = append(found, Finding{Level: Missing, Subject: subject, Text: err.Error()})
		}
	}
	return found
}

// Errors returns an error for each finding that keeps a cluster from starting, and nil if there is none.
func Errors(found []Finding) error {
	var errs []error
	for _, f := range found {
		if f.Level == Missing {
			errs = append(errs, errors.New(f.String()))
		}
	}
	return errors.Join(errs...)
}

// Warnings returns the findings that do not keep a cluster from starting, but that its user should know.
func Warnings(found []Finding) []string {
	var out []string
	for _, f := range found {
		if f.Level == Warning {
			out = append(out, f.String())
		}
	}
	return out
}

// PrintTable prints all findings, and the number of those that matter.
func PrintTable(out io.Writer, found []Finding) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	count := map[Level]int{}
	fmt.Fprintln(w, "CHECK\tSTATE\tDETAIL")
	for _, f := range found {
		count[f.Level]++
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.Subject, f.Level, f)
	}
	fmt.Fprintf(w, "%d missing, %s, %s\n", count[Missing], numbered(count[Warning], Warning),
		numbered(count[Note], Note))
	return w.Flush()
}

// numbered returns how many findings of a level there are, in words.
func numbered(n int, level Level) string {
	if n == 1 {
		return fmt.Sprintf("1 %s", level)
	}
	return fmt.Sprintf("%d %ss", n, level)
}
