package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// label is a mark in the name of a spec: [Conformance], [Serial].
var label = regexp.MustCompile(`\[[^\]]*\]`)

// specsSection has the specs of the conformance suite. Our suite is that of the release that we follow, so that the two
// releases are compared.
func specsSection(current, next release) (section, error) {
	s := section{title: "Conformance specs", against: "the same file of " + current.version +
		" (test/conformance/testdata/conformance.yaml), which our suite runs"}
	old, err := specsOf(current)
	if err != nil {
		return s, err
	}
	all, err := specsOf(next)
	if err != nil {
		return s, err
	}
	found, _ := compare(old, old, all)
	var renamed []change
	for _, c := range found {
		switch c.kind {
		case added:
			s.tasks = append(s.tasks, "Pass `"+c.to+"`")
		case gone:
			s.tasks = append(s.tasks, "Forget `"+c.from+"`")
		case altered:
			renamed = append(renamed, c)
		}
	}
	slices.Sort(s.tasks)
	if len(renamed) > 0 {
		s.tasks = append(s.tasks, fmt.Sprintf("Look for names of specs in expressions (FOCUS, test/conformance/missing.go): "+
			"%d have their labels in another place, such as `%s` → `%s`", len(renamed), renamed[0].from, renamed[0].to))
	}
	return s, nil
}

func specsOf(r release) (facts, error) {
	f := facts{}
	return f, r.add(f, "test/conformance/testdata/conformance.yaml", facts.specs)
}

// specs adds the specs: their names by the names without regard to where labels stand.
func (f facts) specs(data []byte) error {
	var list []struct{ CodeName string }
	if err := yaml.Unmarshal(data, &list); err != nil {
		return err
	}
	for _, s := range list {
		labels := label.FindAllString(s.CodeName, -1)
		slices.Sort(labels)
		words := strings.Fields(label.ReplaceAllString(s.CodeName, " "))
		f[strings.Join(append(words, labels...), " ")] = s.CodeName
	}
	return nil
}
