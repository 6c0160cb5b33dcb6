package cluster

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/supervise"
)

// LogNames returns the processes that have a log, in order: "etcd", "n1-kubelet", …
func LogNames(dataDir string) []string { return slices.Sorted(maps.Keys(logPaths(dataDir))) }

// logPaths returns where the processes' logs are, by the processes' names.
func logPaths(dataDir string) map[string]string {
	logs := plan.Layout(dataDir).At("logs")
	paths := map[string]string{}
	for _, pattern := range []string{"*.log", "*/*.log"} {
		files, _ := fs.Glob(os.DirFS(logs), pattern) // its only error is a bad pattern
		for _, f := range files {
			paths[strings.ReplaceAll(strings.TrimSuffix(f, ".log"), "/", "-")] = filepath.Join(logs, f)
		}
	}
	return paths
}

// findLog returns which of the logs is meant by a process and, for one that nodes have, a node.
func findLog(names []string, process, node string) (string, error) {
	if node != "" {
		process = node + "-" + process
	}
	if slices.Contains(names, process) {
		return process, nil
	}
	var of []string
	for _, name := range names {
		if _, component, onNode := strings.Cut(name, "-"); onNode && nodeName.MatchString(name) &&
			component == process {
			of = append(of, name)
		}
	}
	switch len(of) {
	case 0:
		return "", fmt.Errorf("no log of %q; there are: %s", process, strings.Join(names, ", "))
	case 1:
		return of[0], nil
	}
	return "", fmt.Errorf("several nodes have a %s: say which with --node (%s)", process, strings.Join(of, ", "))
}

// nodeName begins the names of nodes' logs.
var nodeName = regexp.MustCompile(`^n[1-9]-`)

// PrintLog prints the log of a process of the cluster in dataDir. node is the node of a process that nodes have; "" if
// the process's name says it, or there is one node.
func PrintLog(ctx context.Context, dataDir, process, node string, o supervise.LogOptions, out io.Writer) error {
	name, err := findLog(LogNames(dataDir), process, node)
	if err != nil {
		return err
	}
	return supervise.ReadLog(ctx, logPaths(dataDir)[name], o, out)
}
