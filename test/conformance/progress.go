package main

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// progress turns ginkgo's output into a line per finished spec: "12/417 passed 3.2 s name". It is a writer that keeps
// only what it needs of an unfinished line.
type progress struct {
	out     io.Writer
	rest    []byte
	total   string
	done    int
	failed  int
	pending string // the outcome of a spec whose name is to be printed
	begun   string // the first line after a rule: in a serial run, the name of the spec that runs
	ruled   bool   // whether the last line was a rule
}

var (
	willRun  = regexp.MustCompile(`^Will run (\d+) of`)
	finished = regexp.MustCompile(`^• (?:\[([A-Z]+)\] )?\[([0-9.]+) seconds\]`)
	labels   = regexp.MustCompile(` \[[^\]]*, [^\]]*\]$`)
)

func newProgress(out io.Writer) *progress { return &progress{out: out, total: "?"} }

// Write never fails: progress is a comfort, the log has everything.
func (p *progress) Write(data []byte) (int, error) {
	p.rest = append(p.rest, data...)
	for {
		line, rest, found := bytes.Cut(p.rest, []byte("\n"))
		if !found {
			return len(data), nil
		}
		p.rest = rest
		p.line(string(line))
	}
}

func (p *progress) line(line string) {
	if m := willRun.FindStringSubmatch(line); m != nil {
		p.total = m[1]
		return
	}
	if m := finished.FindStringSubmatch(line); m != nil {
		p.done++
		outcome := "passed"
		if m[1] != "" {
			outcome = "FAILED"
			p.failed++
		}
		p.pending = fmt.Sprintf("%4d/%s %s %6ss", p.done, p.total, outcome, m[2])
		return
	}
	rule := line != "" && strings.Trim(line, "-") == ""
	if p.pending != "" && line != "" {
		// A parallel run prints the name after the outcome, a serial one before it.
		name := line
		if rule {
			name = p.begun
		}
		fmt.Fprintf(p.out, "%s  %s\n", p.pending, labels.ReplaceAllString(strings.Replace(name, "[It] ", "", 1), ""))
		p.pending = ""
	}
	if p.ruled {
		p.begun = line
	}
	p.ruled = rule
}
