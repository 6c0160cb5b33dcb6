package logs

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

// Names returns the processes that have a log, in order: "etcd", "n1-kubelet", …
func Names(l plan.Layout) []string { return slices.Sorted(maps.Keys(paths(l))) }

// paths returns the files of the processes' logs by the processes' names.
func paths(l plan.Layout) map[string]string {
	logs := l.At("logs")
	found := map[string]string{}
	for _, pattern := range []string{"*.log", "*/*.log"} {
		files, _ := fs.Glob(os.DirFS(logs), pattern) // its only error is a bad pattern
		for _, f := range files {
			found[strings.ReplaceAll(strings.TrimSuffix(f, ".log"), "/", "-")] = filepath.Join(logs, f)
		}
	}
	return found
}

// find returns the one of the logs that belongs to a process and, for one that nodes have, a node.
func find(names []string, process, node string) (string, error) {
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

// nodeName matches the beginning of the names of nodes' logs.
var nodeName = regexp.MustCompile(`^n[1-9]-`)

// Print prints the log of a process. node is the node of a process that runs on nodes; "" if the process's name
// contains it, or if only one node has such a process.
func Print(ctx context.Context, l plan.Layout, process, node string, o supervise.LogOptions, out io.Writer) error {
	name, err := find(Names(l), process, node)
	if err != nil {
		return err
	}
	return supervise.ReadLog(ctx, paths(l)[name], o, out)
}
