package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// section is a part of the list.
type section struct {
	title string
	// against says what the release's files were compared with; "" if nothing could be.
	against string
	// tasks are the lines, in order, each one thing to do.
	tasks []string
	// known is how many differences the release that we follow has, too.
	known int
	// remarks say what the tasks do not: where to look for what no file has.
	remarks []string
}

// longest bounds a line, in bytes: values such as the verbs of a resource are short, and a release is not ours.
const longest = 600

// render writes the list as Markdown, with at most so many tasks of a section. place is where the release's files are.
func render(w io.Writer, title, place string, sections []section, most int) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "# %s\n\nPaths are below `%s`.\n", title, place)
	for _, s := range sections {
		if s.against == "" {
			fmt.Fprintf(b, "\n## %s (not compared)\n", s.title)
		} else {
			fmt.Fprintf(b, "\n## %s (%d)\n\nCompared with %s.\n\n", s.title, len(s.tasks), s.against)
		}
		for i, task := range s.tasks {
			if i == most {
				fmt.Fprintf(b, "- [ ] … and %d more lines: run again with MOST=%d\n", len(s.tasks)-most, len(s.tasks))
				break
			}
			fmt.Fprintf(b, "- [ ] %s\n", line(task))
		}
		if s.against != "" && len(s.tasks) == 0 {
			fmt.Fprintln(b, "Nothing new.")
		}
		remarks := s.remarks
		if s.known > 0 {
			remarks = append(remarks[:len(remarks):len(remarks)],
				fmt.Sprintf("%d more differences are not new: the release that we follow has them, too.", s.known))
		}
		for _, r := range remarks {
			fmt.Fprintf(b, "\n%s\n", line(r))
		}
	}
	return b.Flush()
}

// line keeps a text in one line, and cuts one that is too long.
func line(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return text
}
