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
	Date   time.Time
	Commit string
	// Suite is the release of Kubernetes whose suite ran.
	Suite, Focus, Labels, Kubectl string
	Wall                          time.Duration
	Specs                         []spec
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
	before, err := readRecord(s.results)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Runs of different specs say nothing about one another.
	compared := err == nil && before.scope == r.scope()
	var newly []string
	if compared {
		newly = missingFrom(before.failing, r.failing())
	}
	if err := os.MkdirAll(filepath.Dir(s.results), 0o755); err != nil {
		return err
	}
	var text strings.Builder
	r.write(&text, newly, compared)
	if err := os.WriteFile(s.results, []byte(text.String()), 0o644); err != nil {
		return err
	}
	r.summary(os.Stdout)
	groups := grouped(r.failing(), missing)
	for _, g := range groups {
		fmt.Printf("%4d  %s\n", len(g.names), g.heading)
	}
	if r.Focus == "" && r.Labels == conformanceSpecs {
		for _, name := range built(groups, missing) {
			fmt.Printf("no spec waits for %s any more: take it out of missing.go\n", name)
		}
	}
	for _, name := range newly {
		fmt.Println("newly failing:", name)
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

// failingHeading starts the part of a result file that diff reads, scopePrefix the line that says which specs ran.
const (
	failingHeading = "## Failing specs"
	scopePrefix    = "- scope: "
)

// scope says which specs ran.
func (r *result) scope() string {
	specs := "marked [Conformance]"
	if r.Labels != conformanceSpecs {
		specs = "with `" + r.Labels + "`"
	}
	if r.Focus != "" {
		return "the specs of Kubernetes " + r.Suite + " " + specs + " that match `" + r.Focus + "`"
	}
	return "all specs of Kubernetes " + r.Suite + " " + specs
}

// write writes the result file.
func (r *result) write(out io.Writer, newly []string, compared bool) {
	fmt.Fprintf(out, "# Conformance results\n\nWritten by `make conformance`; two such files are compared by `make conformance-diff`.\n\n")
	fmt.Fprintf(out, "- date: %s\n- commit: %s\n%s%s\n- kubectl: %s\n- wall time: %s\n- **passed: %d of %d**\n\n",
		r.Date.Format(time.RFC3339), r.Commit, scopePrefix, r.scope(), r.Kubectl, r.Wall.Round(time.Second),
		len(r.Specs)-r.failed(), len(r.Specs))
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
	for _, g := range grouped(failing, missing) {
		fmt.Fprintf(out, "### %s (%d)\n\n", g.heading, len(g.names))
		for _, name := range g.names {
			fmt.Fprintf(out, "- `%s`\n  %s\n", name, escape(why[name]))
		}
		fmt.Fprintln(out)
	}
	if len(failing) == 0 {
		fmt.Fprint(out, "None.\n\n")
	}
	if !compared {
		return
	}
	fmt.Fprint(out, "## Newly failing since the last recorded run\n\n")
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

// record is what a result file tells a later run.
type record struct {
	scope   string
	failing []string
}

// readRecord reads a result file.
func readRecord(path string) (record, error) {
	var r record
	f, err := os.Open(path)
	if err != nil {
		return r, fmt.Errorf("read the result file: %w", err)
	}
	defer f.Close()
	inside, found := false, false
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "## ") {
			inside = line == failingHeading
			found = found || inside
			continue
		}
		if scope, ok := strings.CutPrefix(line, scopePrefix); ok && !found {
			r.scope = scope
		}
		if name, ok := strings.CutPrefix(line, "- `"); ok && inside {
			r.failing = append(r.failing, strings.TrimSuffix(name, "`"))
		}
	}
	if err := lines.Err(); err != nil {
		return r, fmt.Errorf("read the result file %s: %w", path, err)
	}
	if !found {
		return r, fmt.Errorf("%s is no result file: it has no %q", path, failingHeading)
	}
	return r, nil
}
