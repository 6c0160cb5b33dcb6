package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// facts are what a release says about one subject, by name: "apps/v1 deployments/scale" has "Namespaced Scale: get,…".
type facts map[string]string

// kind is how a fact differs.
type kind int

const (
	added kind = iota
	altered
	gone
)

// change is a fact that the next release has otherwise than ours.
type change struct {
	kind     kind
	name     string
	from, to string // "" where it is not
	below    int    // how many changes of the same kind it stands for, too (fold)
}

// compare returns how next differs from ours, by kind and name. What current, the release that ours follows, has just
// as next has it is not new: known counts it.
func compare(ours, current, next facts) (found []change, known int) {
	names := map[string]bool{}
	for _, f := range []facts{ours, next} {
		for name := range f {
			names[name] = true
		}
	}
	for name := range names {
		from, had := ours[name]
		to, has := next[name]
		was, is := current[name]
		c := change{kind: altered, name: name, from: from, to: to}
		switch {
		case had == has && from == to:
			continue
		case is == has && was == to:
			known++
			continue
		case !had:
			c.kind = added
		case !has:
			c.kind = gone
		}
		found = append(found, c)
	}
	slices.SortFunc(found, func(a, b change) int {
		if a.kind != b.kind {
			return int(a.kind) - int(b.kind)
		}
		return strings.Compare(a.name, b.name)
	})
	return found, known
}

// fold leaves out what is below another change of its kind, as the fields of a new type are, and counts it there. A
// name is below another one that it continues after sep.
func fold(changes []change, sep string) (out []change) {
	type key struct {
		kind kind
		name string
	}
	at := map[key]int{}
	for _, c := range changes {
		at[key{c.kind, c.name}] = -1
	}
next:
	for _, c := range changes { // what c is below comes first: its name is shorter
		for i := 0; ; {
			n := strings.Index(c.name[i:], sep)
			if n < 0 {
				break
			}
			i += n
			if above, ok := at[key{c.kind, c.name[:i]}]; ok && above >= 0 {
				out[above].below++
				continue next
			}
			i += len(sep)
		}
		at[key{c.kind, c.name}] = len(out)
		out = append(out, c)
	}
	return out
}

// words says what to do about each kind of change: "Serve", "Change", "Stop serving".
type words [3]string

// lines are the changes as tasks: "Serve `name`: what it is". note, if not nil, adds to a line.
func (w words) lines(changes []change, note func(name string) string) (out []string) {
	for _, c := range changes {
		line := fmt.Sprintf("%s `%s`", w[c.kind], c.name)
		switch {
		case c.kind == altered:
			line += ": " + code(c.from) + " → " + code(c.to)
		case c.kind == added && c.to != "":
			line += ": " + code(c.to)
		}
		if c.below > 0 {
			line += fmt.Sprintf(", with %d below it", c.below)
		}
		if note != nil {
			line += note(c.name)
		}
		out = append(out, line)
	}
	return out
}

// code marks a fact as it stands in a file.
func code(fact string) string {
	if fact == "" {
		return "nothing"
	}
	return "`" + fact + "`"
}

// names are the names of facts, in order.
func (f facts) names() []string { return slices.Sorted(maps.Keys(f)) }
