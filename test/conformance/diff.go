package main

import (
	"fmt"
	"io"
)

// diffFiles compares two result files and prints what newly fails and what was mended. Newly failing specs are an
// error.
func diffFiles(oldPath, newPath string, out io.Writer) error {
	before, err := readRecord(oldPath)
	if err != nil {
		return err
	}
	after, err := readRecord(newPath)
	if err != nil {
		return err
	}
	if before.scope != after.scope {
		return fmt.Errorf("the two runs are not of the same specs: %s; %s", before.scope, after.scope)
	}
	newly, mended := missingFrom(before.failing, after.failing), missingFrom(after.failing, before.failing)
	for _, name := range mended {
		fmt.Fprintln(out, "mended:       ", name)
	}
	for _, name := range newly {
		fmt.Fprintln(out, "newly failing:", name)
	}
	fmt.Fprintf(out, "failing: %d, then %d\n", len(before.failing), len(after.failing))
	if len(newly) > 0 {
		return fmt.Errorf("%d specs newly fail", len(newly))
	}
	return nil
}

// missingFrom returns the names that are in names and not in known, in order.
func missingFrom(known, names []string) []string {
	seen := map[string]bool{}
	for _, name := range known {
		seen[name] = true
	}
	var out []string
	for _, name := range names {
		if !seen[name] {
			out = append(out, name)
		}
	}
	return out
}
