package logs

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/supervise"
)

// Names returns the processes that have a log, in order: "etcd", "n1-kubelet", … It is an error if there are none.
func Names(l plan.Layout) ([]string, error) {
	logs := all(l)
	if len(logs) == 0 {
		return nil, errNone(l)
	}
	var names []string
	for _, log := range logs {
		names = append(names, log.name())
	}
	return names, nil
}

// errNone is the error of a data directory without logs.
func errNone(l plan.Layout) error {
	return fmt.Errorf("there are no logs in %s (bonsai list prints the clusters)", l.At("logs"))
}

// processLog is the log of one process.
type processLog struct {
	node    string // "" for a process of the host
	process string
	path    string
}

// name is the process's name among all of the cluster.
func (p processLog) name() string {
	if p.node == "" {
		return p.process
	}
	return p.node + "-" + p.process
}

// all returns the logs of a cluster by name. Which node a log belongs to follows from its directory (plan.Layout): a
// name alone does not say, because the node of a machine that has joined may have dashes in its name.
func all(l plan.Layout) []processLog {
	logs := l.At("logs")
	var found []processLog
	for _, pattern := range []string{"*.log", "*/*.log"} {
		files, _ := fs.Glob(os.DirFS(logs), pattern) // its only error is a bad pattern
		for _, file := range files {
			node, base := path.Split(file)
			found = append(found, processLog{node: strings.TrimSuffix(node, "/"),
				process: strings.TrimSuffix(base, ".log"), path: filepath.Join(logs, file)})
		}
	}
	slices.SortFunc(found, func(a, b processLog) int { return strings.Compare(a.name(), b.name()) })
	return found
}

// find returns the one of the logs that belongs to a process and, for one that nodes have, a node.
func find(logs []processLog, process, node string) (processLog, error) {
	if node != "" {
		process = node + "-" + process
	}
	var names, onNodes []string
	var last processLog
	for _, log := range logs {
		switch {
		case log.name() == process:
			return log, nil
		case log.node != "" && log.process == process:
			onNodes, last = append(onNodes, log.name()), log
		}
		names = append(names, log.name())
	}
	switch len(onNodes) {
	case 0:
		return last, fmt.Errorf("no log of %q; there are: %s", process, strings.Join(names, ", "))
	case 1:
		return last, nil
	}
	return last, fmt.Errorf("several nodes have a %s: say which with --node (%s)", process, strings.Join(onNodes, ", "))
}

// Print prints the log of a process. node is the node of a process that runs on nodes; "" if the process's name
// contains it, or if only one node has such a process.
func Print(ctx context.Context, l plan.Layout, process, node string, o supervise.LogOptions, out io.Writer) error {
	logs := all(l)
	if len(logs) == 0 {
		return errNone(l)
	}
	log, err := find(logs, process, node)
	if err != nil {
		return err
	}
	return supervise.ReadLog(ctx, log.path, o, out)
}
