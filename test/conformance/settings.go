package main

import (
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"regexp"
	"time"
)

// settings say what a run is. All paths are absolute.
type settings struct {
	// module is this directory: the module that pins the suite. product holds the binaries under test.
	module, product string
	// data holds what is built once for each suite (bin, images), the cluster's data and the runs' logs.
	data string
	// suite is the release of Kubernetes whose suite runs. Only that of suiteVersion can be built here.
	suite string
	// focus is a regular expression on spec names; "" runs all, and only such a run is recorded in results.
	focus string
	// labels is ginkgo's label filter for what runs; only a run of conformanceSpecs is recorded in results.
	labels  string
	results string
	// upstream drives the sig-cli specs with Kubernetes' own kubectl instead of ours.
	upstream bool
	// config is the cluster's configuration file, "" for none.
	config string
	// procs is the number of processes for the parallel specs; timeout bounds each of the two parts.
	procs   int
	timeout time.Duration
	// pull has every node pull the image that most specs use before the first spec.
	pull bool
	// keep leaves the cluster running.
	keep bool
}

// conformanceSpecs is the label of the specs that a conformant cluster passes.
const conformanceSpecs = "Conformance"

func parseSettings(args []string) (settings, error) {
	var s settings
	var kubectl string
	f := flag.NewFlagSet("run", flag.ContinueOnError)
	f.StringVar(&s.module, "module", "test/conformance", "directory of the module that pins the suite")
	f.StringVar(&s.product, "product", "bin", "directory of the binaries under test")
	f.StringVar(&s.data, "data", "/var/lib/bonsai-conformance",
		"directory for what is built once, the cluster and the logs")
	f.StringVar(&s.suite, "suite", suiteVersion,
		"release of Kubernetes whose suite runs; the data directory must have one that is not that of the module")
	f.StringVar(&s.results, "results", "", "result file (default: RESULTS.md of the module for a full run of its suite, "+
		"of the data directory for others)")
	f.StringVar(&s.focus, "focus", "", "regular expression: run only specs whose name matches")
	f.StringVar(&s.labels, "labels", conformanceSpecs,
		"ginkgo's label filter: run the specs that it selects, for example 'Feature: containsAny NetworkPolicy'")
	f.StringVar(&s.config, "config", "",
		"configuration file of the cluster (bonsai config print-default), for example of both IP families")
	f.StringVar(&kubectl, "kubectl", "ours", "whose kubectl the sig-cli specs drive: ours or upstream")
	f.IntVar(&s.procs, "procs", 4, "processes for the parallel specs")
	f.DurationVar(&s.timeout, "timeout", 3*time.Hour, "longest time of the parallel and of the serial part")
	f.BoolVar(&s.pull, "pull-first", false,
		"have every node pull the image that most specs use before the first spec, for slow machines")
	f.BoolVar(&s.keep, "keep", false, "leave the cluster running")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	return s.complete(kubectl)
}

// complete checks the settings and fills in what follows from others.
func (s settings) complete(kubectl string) (settings, error) {
	var errs []error
	if kubectl != "ours" && kubectl != "upstream" {
		errs = append(errs, fmt.Errorf("-kubectl: must be ours or upstream, not %q", kubectl))
	}
	s.upstream = kubectl == "upstream"
	if _, err := regexp.Compile(s.focus); err != nil {
		errs = append(errs, fmt.Errorf("-focus: %w", err))
	}
	if !regexp.MustCompile(`^v[0-9]+(\.[0-9]+){2}$`).MatchString(s.suite) {
		errs = append(errs, fmt.Errorf("-suite: must be a release such as %s, not %q", suiteVersion, s.suite))
	}
	if s.procs < 1 {
		errs = append(errs, fmt.Errorf("-procs: must be at least 1, not %d", s.procs))
	}
	if s.results == "" {
		s.results = filepath.Join(s.module, "RESULTS.md")
		if s.focus != "" || s.labels != conformanceSpecs || s.suite != suiteVersion {
			s.results = filepath.Join(s.data, "RESULTS.md")
		}
	}
	paths := []*string{&s.module, &s.product, &s.data, &s.results}
	if s.config != "" {
		paths = append(paths, &s.config)
	}
	for _, path := range paths {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			errs = append(errs, err)
		}
		*path = absolute
	}
	return s, errors.Join(errs...)
}

// The parts of the data directory.
func (s settings) bin(name string) string    { return filepath.Join(s.data, s.suite, "bin", name) }
func (s settings) work(name string) string   { return filepath.Join(s.data, s.suite, "work", name) }
func (s settings) imageTree() string         { return filepath.Join(s.data, s.suite, "images") }
func (s settings) clusterDir() string        { return filepath.Join(s.data, "cluster") }
func (s settings) output(part string) string { return filepath.Join(s.data, "run", part) }
