package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"text/tabwriter"
	"time"
)

// result is one run of the suite.
type result struct {
	Date           time.Time
	Commit         string
	Focus, Kubectl string
	Wall           time.Duration
	Specs          []spec
}

func (r *result) failed() int {
	n := 0
	for _, s := range r.Specs {
		if !s.Passed {
			n++
		}
	}
	return n
}

// failing returns the names of the specs that failed, in order.
func (r *result) failing() []string {
	var names []string
	for _, s := range r.Specs {
		if !s.Passed {
			names = append(names, s.Name)
		}
	}
	sort.Strings(names)
	return names
}

// tally counts a group's specs.
type tally struct {
	sig        string
	passed, of int
}

func (r *result) bySIG() []tally {
	counts := map[string]*tally{}
	for _, s := range r.Specs {
		t := counts[s.sig()]
		if t == nil {
			t = &tally{sig: s.sig()}
			counts[s.sig()] = t
		}
		t.of++
		if s.Passed {
			t.passed++
		}
	}
	var out []tally
	for _, t := range counts {
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b tally) int { return strings.Compare(a.sig, b.sig) })
	return out
}

// record prints the summary and writes the result file, which tells what newly fails since the run it replaces.
func (s settings) record(r *result) error {
	before, err := readFailing(s.results)
	if errors.Is(err, fs.ErrNotExist) {
		before = nil
	} else if err != nil {
		return err
	}
	newly := missingFrom(before, r.failing())
	if err := os.MkdirAll(filepath.Dir(s.results), 0o755); err != nil {
		return err
	}
	var text strings.Builder
	r.write(&text, newly, before != nil)
	if err := os.WriteFile(s.results, []byte(text.String()), 0o644); err != nil {
		return err
	}
	r.summary(os.Stdout)
	for _, name := range newly {
		if before != nil {
			fmt.Println("newly failing:", name)
		}
	}
	fmt.Println("written to", s.results)
	return nil
}

// summary prints the counts by SIG.
func (r *result) summary(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "SIG\tpassed\tfailed\tof\t")
	for _, t := range r.bySIG() {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t\n", t.sig, t.passed, t.of-t.passed, t.of)
	}
	fmt.Fprintf(w, "all\t%d\t%d\t%d\t\n", len(r.Specs)-r.failed(), r.failed(), len(r.Specs))
	w.Flush()
	fmt.Fprintln(out, "wall time", r.Wall.Round(time.Second))
}

// failingHeading starts the part of a result file that diff reads.
const failingHeading = "## Failing specs"

// write writes the result file.
func (r *result) write(out io.Writer, newly []string, compared bool) {
	scope := "all specs marked [Conformance]"
	if r.Focus != "" {
		scope = "the specs marked [Conformance] that match `" + r.Focus + "`"
	}
	fmt.Fprintf(out, "# Conformance results\n\nWritten by `make conformance`; two such files are compared by `make conformance-diff`.\n\n")
	fmt.Fprintf(out, "- date: %s\n- commit: %s\n- scope: %s of Kubernetes v1.36.3\n- kubectl: %s\n- wall time: %s\n- **passed: %d of %d**\n\n",
		r.Date.Format(time.RFC3339), r.Commit, scope, r.Kubectl, r.Wall.Round(time.Second), len(r.Specs)-r.failed(), len(r.Specs))
	fmt.Fprintf(out, "| SIG | passed | failed | of |\n|---|---|---|---|\n")
	for _, t := range r.bySIG() {
		fmt.Fprintf(out, "| %s | %d | %d | %d |\n", t.sig, t.passed, t.of-t.passed, t.of)
	}
	fmt.Fprintf(out, "\n%s\n\n", failingHeading)
	why := map[string]string{}
	for _, s := range r.Specs {
		why[s.Name] = s.Why
	}
	failing := r.failing()
	for _, name := range failing {
		fmt.Fprintf(out, "- `%s`\n  %s\n", name, escape(why[name]))
	}
	if len(failing) == 0 {
		fmt.Fprintln(out, "None.")
	}
	if !compared {
		return
	}
	fmt.Fprint(out, "\n## Newly failing since the last recorded run\n\n")
	for _, name := range newly {
		fmt.Fprintf(out, "- `%s`\n", name)
	}
	if len(newly) == 0 {
		fmt.Fprintln(out, "None.")
	}
}

// escape keeps a failure's text from being read as markup.
func escape(s string) string {
	return strings.NewReplacer("<", "&lt;", "`", "'", "*", `\*`, "_", `\_`).Replace(s)
}

// readFailing returns the names of the failing specs that a result file lists; never nil for a readable file.
func readFailing(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the result file: %w", err)
	}
	defer f.Close()
	names, inside, found := []string{}, false, false
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "## ") {
			inside = line == failingHeading
			found = found || inside
			continue
		}
		name, isItem := strings.CutPrefix(line, "- `")
		if inside && isItem {
			names = append(names, strings.TrimSuffix(name, "`"))
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the result file %s: %w", path, err)
	}
	if !found {
		return nil, fmt.Errorf("%s is no result file: it has no %q", path, failingHeading)
	}
	return names, nil
}
