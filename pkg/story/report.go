package story

import (
	"fmt"
	"slices"
	"time"
)

// Report is where the time of many startups goes, maybe beside an earlier time.
type Report struct {
	// Title says which objects: "pods of namespace shop".
	Title string `json:"title"`
	// From and To are when they were created; zero times if that did not matter.
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
	// Earlier is when the startups were created that these are compared with.
	Earlier *Interval `json:"earlier,omitempty"`

	Resolution time.Duration `json:"resolution,omitempty"`
	Notes      []string      `json:"notes,omitempty"`
	Summary    Summary       `json:"summary"`
	// Changes compare the summary with the earlier one, if there is one.
	Changes []Change `json:"changes,omitempty"`
}

// Interval is a time from one moment to another.
type Interval struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Note adds a note, once.
func (r *Report) Note(note string) {
	if !slices.Contains(r.Notes, note) {
		r.Notes = append(r.Notes, note)
	}
}

// Headline says how many startups there are and how long they took.
func (r *Report) Headline() string {
	t := r.Summary.Total
	head := r.Title + ": " + plural(t.Count, "startup")
	switch {
	case t.Count == 1:
		head += " within " + Text(t.Max, r.Resolution)
	case t.Count > 1:
		head += ", half of them within " + Text(t.P50, r.Resolution) + ", the slowest " + Text(t.Max, r.Resolution)
	}
	switch n := r.Summary.Lapsed; {
	case n == 1:
		head += "; of them 1 is not Ready now"
	case n > 1:
		head += fmt.Sprintf("; of them %d are not Ready now", n)
	}
	if n := r.Summary.Unready; n > 0 {
		head += "; " + plural(n, "pod") + " not Ready"
	}
	if n := r.Summary.Unknown; n > 0 {
		head += "; of " + plural(n, "pod") + " it is not known when it was Ready"
	}
	if n := r.Summary.Ended; n > 0 {
		head += "; " + plural(n, "pod") + " ended"
	}
	switch n := r.Summary.Gone; {
	case n == 1:
		head += "; of them 1 is gone"
	case n > 1:
		head += fmt.Sprintf("; of them %d are gone", n)
	}
	return head
}

// When says when the startups were, "" if that did not matter.
func (r *Report) When() string {
	if r.From.IsZero() {
		return ""
	}
	when := "created " + interval(r.From, r.To)
	if r.Earlier != nil {
		when += ", compared with " + interval(r.Earlier.From, r.Earlier.To)
	}
	return when
}

func interval(from, to time.Time) string {
	const day, clock = "2006-01-02", "15:04:05"
	from, to = from.UTC(), to.UTC()
	if from.Format(day) == to.Format(day) {
		return from.Format(day+" "+clock) + " to " + to.Format(clock) + " UTC"
	}
	return from.Format(day+" "+clock) + " to " + to.Format(day+" "+clock) + " UTC"
}
