package main

import (
	"regexp"
	"slices"
)

// feature is a part of Kubernetes that is not built yet, and the specs that cannot pass without it.
type feature struct {
	name  string
	specs *regexp.Regexp
}

// missing lists the features not built yet; the first whose expression matches a failing spec's name claims it. Whoever
// builds one takes its line away: a failing spec that no line claims is an error of ours.
var missing = []feature{}

// group is a heading of the failing specs and their names, in order.
type group struct {
	heading string
	names   []string
}

// unexplained heads the failing specs that no missing feature explains.
const unexplained = "Errors"

func waitsFor(f feature) string { return "Missing: " + f.name }

// grouped sorts failing specs by what they wait for: errors first, then the missing features in their order, without
// empty groups.
func grouped(names []string, features []feature) []group {
	groups := make([]group, len(features)+1)
	groups[0].heading = unexplained
	for i, f := range features {
		groups[i+1].heading = waitsFor(f)
	}
	for _, name := range names {
		at := 0
		for i, f := range features {
			if f.specs.MatchString(name) {
				at = i + 1
				break
			}
		}
		groups[at].names = append(groups[at].names, name)
	}
	out := groups[:0]
	for _, g := range groups {
		if len(g.names) > 0 {
			out = append(out, g)
		}
	}
	return out
}

// built returns the features that no failing spec of a run of all specs waits for: their lines are to be taken away.
func built(groups []group, features []feature) []string {
	var out []string
	for _, f := range features {
		if !slices.ContainsFunc(groups, func(g group) bool { return g.heading == waitsFor(f) }) {
			out = append(out, f.name)
		}
	}
	return out
}
