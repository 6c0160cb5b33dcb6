package main

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// toRead are the parts of a CHANGELOG that tell what a release does otherwise. Most of it stands nowhere else:
// messages, columns, events, conditions, defaults and flags of kubectl.
var toRead = []string{"Urgent Upgrade Notes", "Dependency", "Deprecation", "API Change", "Feature", "Bug or Regression",
	"Other (Cleanup or Flake)"}

// notesSection names the parts of the release's CHANGELOG to read, in all releases after ours. A patch release
// stands in the CHANGELOG of the next one.
func notesSection(current, next release) (section, error) {
	s := section{title: "Release notes", against: "the releases up to " + current.version}
	v, err := version.ParseSemantic(next.version)
	if err != nil {
		return s, err
	}
	from, err := version.ParseSemantic(current.version)
	if err != nil {
		return s, err
	}
	for minor := from.Minor(); minor <= v.Minor(); minor++ {
		path := fmt.Sprintf("CHANGELOG/CHANGELOG-%d.%d.md", v.Major(), minor)
		if !next.has(path) {
			continue // the module of a release often has only its own
		}
		data, err := next.read(path)
		if err != nil {
			return s, err
		}
		for _, n := range notes(string(data), from, v) {
			s.tasks = append(s.tasks, fmt.Sprintf("Read %q of %s: lines %d to %d of %s", n.title, n.version, n.first,
				n.last, path))
		}
	}
	s.remarks = []string{"Warnings of deprecated API versions stand in `Deprecated` of the rows (api/resources): compare " +
		"the answers of both servers with test/compare."}
	return s, nil
}

// note is a part of a CHANGELOG, and the lines that it has.
type note struct {
	version, title string
	first, last    int
}

// notes finds the parts to read of the releases after from up to to, in the file's order. Releases
// before a final one count only while the final one is not there: it repeats them.
func notes(changelog string, from, to *version.Version) (found []note) {
	var of string // the release, if it counts
	var open bool // in a part that counts
	n := 0
	for line := range strings.Lines(changelog) {
		n++
		line = strings.TrimRight(line, " \n")
		if tag, ok := strings.CutPrefix(line, "# v"); ok {
			v, err := version.ParseSemantic(tag)
			of, open = "", false
			final := err == nil && v.PreRelease() == ""
			if err == nil && from.LessThan(v) && !to.LessThan(v) &&
				(final || to.PreRelease() != "" && v.Minor() == to.Minor()) {
				of = "v" + tag
			}
			continue
		}
		title, heading := strings.CutPrefix(line, "##")
		title = strings.TrimLeft(title, "# ")
		switch {
		case of == "":
		case heading && slices.Contains(toRead, title):
			found, open = append(found, note{version: of, title: title, first: n, last: n}), true
		case heading && !strings.HasPrefix(title, "(No, really"):
			open = false
		case open && line != "":
			found[len(found)-1].last = n
		}
	}
	return found
}
