package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// metricLists is where the lists of metrics are in a release's repository, the newest place first. Since v1.37 it is a
// module of its own, which the module of the release does not bring.
func metricLists() []string {
	return []string{"hack/tools/instrumentation/documentation/documentation-list.yaml",
		"test/instrumentation/documentation/documentation-list.yaml"}
}

// metricsSection has the metrics of all components, with type, stability and labels. The files, if not empty, are the
// lists of the releases, from elsewhere.
func metricsSection(current, next release, currentFile, nextFile string) (section, error) {
	s := section{title: "Metrics"}
	old, err := metricsOf(current, currentFile)
	if err != nil {
		return s, err
	}
	all, err := metricsOf(next, nextFile)
	if err != nil {
		return s, err
	}
	for _, lacks := range []struct {
		list     facts
		of       release
		variable string
	}{{old, current, "METRICS_FROM"}, {all, next, "METRICS"}} {
		if lacks.list == nil {
			s.remarks = append(s.remarks, fmt.Sprintf("The module of %s has no list of metrics. Take %s at that tag "+
				"of Kubernetes' repository, and run again with %s=file.", lacks.of.version, metricLists()[0],
				lacks.variable))
		}
	}
	if len(s.remarks) > 0 {
		return s, nil
	}
	s.against = "the list of " + current.version + " (documentation-list.yaml)"
	found, _ := compare(old, old, all)
	s.tasks = words{"Add", "Change", "Remove"}.lines(found, nil)
	s.remarks = []string{"What components really show is recorded in pkg/cluster/testdata/metrics and " +
		"pkg/apiserver/testdata/metrics; docs/stock.md names the metrics that we lack."}
	return s, nil
}

// metricsOf are the metrics of a release, by the file if it is not empty; nil if there is none and the module has no
// list.
func metricsOf(r release, file string) (facts, error) {
	f := facts{}
	if file != "" {
		return f, addFile(f, os.DirFS(filepath.Dir(file)), filepath.Base(file), facts.metrics)
	}
	for _, path := range metricLists() {
		if r.has(path) {
			return f, r.add(f, path, facts.metrics)
		}
	}
	return nil, nil
}

// metrics adds a list of metrics.
func (f facts) metrics(data []byte) error {
	var list []struct {
		Namespace, Subsystem, Name string
		Type, StabilityLevel       string
		Labels                     []string
		Buckets                    []float64
		DeprecatedVersion          string
		ComponentEndpoints         []struct{ Component string }
	}
	if err := yaml.Unmarshal(data, &list); err != nil {
		return err
	}
	for _, m := range list {
		parts := slices.DeleteFunc([]string{m.Namespace, m.Subsystem, m.Name}, func(s string) bool { return s == "" })
		text := strings.ToLower(m.Type) + " " + m.StabilityLevel
		if len(m.Labels) > 0 {
			text += " " + strings.Join(slices.Sorted(slices.Values(m.Labels)), ",")
		}
		if n := len(m.Buckets); n > 0 {
			text += fmt.Sprintf(" %d buckets from %g to %g", n, m.Buckets[0], m.Buckets[n-1])
		}
		if m.DeprecatedVersion != "" {
			text += " deprecated since " + m.DeprecatedVersion
		}
		var components []string
		for _, e := range m.ComponentEndpoints {
			components = append(components, e.Component)
		}
		slices.Sort(components)
		if components = slices.Compact(components); len(components) > 0 {
			text += " (" + strings.Join(components, ", ") + ")"
		}
		f[strings.Join(parts, "_")] = text
	}
	return nil
}
