package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// spec is what became of one spec.
type spec struct {
	Name   string
	Passed bool
	// Why is the failure in one line.
	Why  string
	Took time.Duration
}

// sig is the special interest group that owns the spec: the first bracketed word of its name, "sig-node".
func (s spec) sig() string {
	name, ok := strings.CutPrefix(s.Name, "[")
	if !ok {
		return "other"
	}
	sig, _, _ := strings.Cut(name, "]")
	return sig
}

// ginkgoSuite is the part of ginkgo's JSON report that matters here.
type ginkgoSuite struct {
	SpecReports []struct {
		ContainerHierarchyTexts []string
		LeafNodeType            string
		LeafNodeText            string
		State                   string
		RunTime                 time.Duration
		Failure                 struct{ Message string }
	}
}

// longestWhy bounds a failure's line, in bytes.
const longestWhy = 240

// readReport returns the specs that a run chose. One that skipped itself counts as failed: none may be skipped.
func readReport(path string) ([]spec, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read ginkgo's report: %w", err)
	}
	var suites []ginkgoSuite
	if err := json.Unmarshal(data, &suites); err != nil {
		return nil, fmt.Errorf("read ginkgo's report %s: %w", path, err)
	}
	var out []spec
	for _, suite := range suites {
		for _, r := range suite.SpecReports {
			notChosen := r.State == "pending" || r.State == "skipped" && r.Failure.Message == ""
			if r.LeafNodeType != "It" || notChosen {
				continue
			}
			s := spec{Name: strings.Join(append(r.ContainerHierarchyTexts, r.LeafNodeText), " "),
				Passed: r.State == "passed", Took: r.RunTime}
			if !s.Passed {
				s.Why = oneLine(r.State, r.Failure.Message)
			}
			out = append(out, s)
		}
	}
	return out, nil
}

// oneLine is a failure's message on one line, bounded, with the state where that says more than "failed".
func oneLine(state, message string) string {
	line := strings.Join(strings.Fields(message), " ")
	if state != "failed" {
		line = state + ": " + line
	}
	if len(line) > longestWhy {
		line = strings.ToValidUTF8(line[:longestWhy], "") + "…"
	}
	return line
}
