package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sort"
	"strings"
	"text/tabwriter"
	"time"
)

// PrintStatus prints every process of the cluster in dataDir, and whether the API server answers and the nodes are Ready. A
// node's processes have the pids of the node's own namespace. It returns an error unless all of the cluster is up.
func PrintStatus(ctx context.Context, dataDir string, out io.Writer) error {
	c, err := LoadExisting(dataDir)
	if err != nil {
		return err
	}
	if c.paused() {
		return c.notRunning()
	}
	supervisor, err := askControl(ctx, c.layout().socket("supervisor"))
	if err != nil {
		return c.notRunning()
	}
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, "WHERE\tPROCESS\tPID\tAGE\tRESTARTS\tLAST EXIT")
	print := func(where string, s *Status) {
		for _, p := range s.Processes {
			age := "-"
			if p.PID != 0 {
				age = time.Since(p.Started).Round(time.Second).String()
			}
			fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%d\t%s\n", where, p.Name, p.PID, age, p.Restarts, p.LastExit)
		}
	}
	print("host", supervisor)
	var down []error
	for _, node := range c.Nodes {
		if status, err := askControl(ctx, c.layout().socket(node.Name())); err == nil {
			print(node.Name(), status)
		} else {
			down = append(down, fmt.Errorf("node %s does not run: %w", node.Name(), err))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return errors.Join(append(down, c.printAPI(ctx, out))...)
}

// printAPI prints what the API server says of itself and of the nodes.
func (c Config) printAPI(ctx context.Context, out io.Writer) error {
	if err := c.askAPI(ctx); err != nil {
		return err
	}
	isReady, err := c.readyNodes(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\nThe API server at %s is ready.\n", c.LocalServer())
	var down []error
	for _, node := range c.Nodes {
		if !isReady[node.Name()] {
			down = append(down, fmt.Errorf("node %s is not Ready", node.Name()))
		}
	}
	return errors.Join(down...)
}

// NodePID returns the pid of a node's init process, whose namespaces are the node's.
func NodePID(ctx context.Context, dataDir, node string) (int, error) {
	if c := (Config{DataDir: dataDir}); c.paused() {
		return 0, c.notRunning()
	}
	supervisor, err := askControl(ctx, layout(dataDir).socket("supervisor"))
	if err != nil {
		return 0, Config{DataDir: dataDir}.notRunning()
	}
	for _, p := range supervisor.Processes {
		if p.Name == "node-"+node && p.PID != 0 {
			return p.PID, nil
		}
	}
	return 0, fmt.Errorf("there is no running node %q", node)
}

// LogFile returns the log file of a process: "etcd", "kube-apiserver", "n1-kubelet", …
func LogFile(dataDir, process string) (string, error) {
	names := LogNames(dataDir)
	for _, name := range names {
		if name == process {
			return layout(dataDir).log(name), nil
		}
	}
	return "", fmt.Errorf("no log of %q; there are: %s", process, strings.Join(names, ", "))
}

// LogNames returns the processes that have a log, in order.
func LogNames(dataDir string) []string {
	files, err := filepath.Glob(layout(dataDir).log("*"))
	if err != nil {
		return nil
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".log"))
	}
	sort.Strings(names)
	return names
}
