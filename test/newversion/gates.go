package main

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"
)

// ourGates is our table of feature gates.
const ourGates = "pkg/featuregates/table.txt"

// gatesSection has the feature gates: their stage, default and lock, and which others they need.
func gatesSection(root fs.FS, current, next release) (section, error) {
	s := section{title: "Feature gates", against: "our table (" + ourGates + ")"}
	ours := facts{}
	if err := addFile(ours, root, ourGates, facts.table); err != nil {
		return s, err
	}
	old, err := gatesOf(current)
	if err != nil {
		return s, err
	}
	all, err := gatesOf(next)
	if err != nil {
		return s, err
	}
	oldNeeds, err := needsOf(current)
	if err != nil {
		return s, err
	}
	needs, err := needsOf(next)
	if err != nil {
		return s, err
	}
	s.tasks, s.known = gateTasks(ours, old, all, oldNeeds, needs)
	if unlisted := without(ours, old, all); len(unlisted) > 0 {
		s.remarks = []string{"No list of Kubernetes has these gates of our table: " + strings.Join(unlisted, ", ") +
			". Compare `kubernetes_feature_enabled` of the release's components."}
	}
	return s, nil
}

// gateTasks orders the tasks by what users notice: changed defaults first. Which gates a gate needs is compared between
// the releases: our table only has what a component refuses.
func gateTasks(ours, old, all, oldNeeds, needs facts) (tasks []string, known int) {
	found, known := compare(ours, old, all)
	var defaults, others, needed []change
	for _, c := range found {
		if c.kind == altered && on(c.from) != on(c.to) {
			defaults = append(defaults, c)
		} else {
			others = append(others, c)
		}
	}
	changed, _ := compare(oldNeeds, oldNeeds, needs)
	for _, c := range changed {
		_, here := ours[c.name]
		if _, there := all[c.name]; here && there {
			c.kind = altered
			needed = append(needed, c)
		}
	}
	slices.SortFunc(needed, func(a, b change) int { return strings.Compare(a.name, b.name) })
	note := func(name string) string {
		if needs[name] == "" {
			return ""
		}
		return " (needs " + needs[name] + ")"
	}
	tasks = words{altered: "Change the default of"}.lines(defaults, note)
	tasks = append(tasks, words{"Add the gate", "Change the stage of", "Remove the gate"}.lines(others, note)...)
	return append(tasks, words{altered: "Change what is needed by"}.lines(needed, nil)...), known
}

// without returns the names of f that none of the others has, in order.
func without(f facts, others ...facts) (names []string) {
	for _, name := range f.names() {
		if !slices.ContainsFunc(others, func(o facts) bool { _, ok := o[name]; return ok }) {
			names = append(names, name)
		}
	}
	return names
}

func on(gate string) bool { return strings.Contains(gate+" ", " on ") }

// table adds our table: a line is name, stage and default, and perhaps "locked" and what the gate needs.
func (f facts) table(data []byte) error {
	for line := range strings.Lines(string(data)) {
		words := strings.Fields(line)
		if len(words) < 3 {
			continue
		}
		text := words[1] + " off"
		if words[2] == "true" {
			text = words[1] + " on"
		}
		if slices.Contains(words[3:], "locked") {
			text += " locked"
		}
		f[words[0]] = text
	}
	return nil
}

// featureLists is where a release has its feature gates.
const featureLists = "test/compatibility_lifecycle/reference/"

// gatesOf are the feature gates of a release, as its minor version has them.
func gatesOf(r release) (facts, error) {
	v, err := version.ParseSemantic(r.version)
	if err != nil {
		return nil, err
	}
	f := facts{}
	return f, r.add(f, featureLists+"versioned_feature_list.yaml", func(f facts, data []byte) error {
		return f.gates(data, v)
	})
}

// needsOf are the gates that the gates of a release need, which stand in a table beside the list.
func needsOf(r release) (facts, error) {
	f := facts{}
	return f, r.add(f, featureLists+"feature_list.md", facts.needs)
}

// gates adds the versioned list: of each gate the last entry that is not of a later minor version than v. Components
// are compatible with the minor version before theirs unless told otherwise, so entries for less do not count.
func (f facts) gates(data []byte, v *version.Version) error {
	var list []struct {
		Name           string
		VersionedSpecs []struct {
			Default, LockToDefault bool
			PreRelease, Version    string
			MinCompatibility       string `json:"minCompatibilityVersion"`
		}
	}
	if err := yaml.Unmarshal(data, &list); err != nil {
		return err
	}
	minor := version.MajorMinor(v.Major(), v.Minor())
	for _, gate := range list {
		for _, s := range gate.VersionedSpecs {
			since, err := version.ParseGeneric(s.Version)
			if err != nil {
				return fmt.Errorf("gate %s: %w", gate.Name, err)
			}
			if minor.LessThan(since) || s.MinCompatibility == minor.String() {
				continue
			}
			text := strings.ToUpper(s.PreRelease)
			if s.PreRelease == "" {
				text = "GA"
			}
			text += map[bool]string{true: " on", false: " off"}[s.Default]
			if s.LockToDefault {
				text += " locked"
			}
			f[gate.Name] = text
		}
	}
	return nil
}

// needs adds the column "Dependencies" of the table: "A,B" by gate, for those that need any.
func (f facts) needs(page []byte) error {
	at := -1
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if at < 0 {
			at = slices.Index(cells, "Dependencies")
			continue
		}
		if at >= len(cells) || cells[at] == "" || strings.HasPrefix(cells[at], "--") {
			continue
		}
		f[cells[1]] = strings.ReplaceAll(cells[at], "<br>", ",")
	}
	return nil
}
