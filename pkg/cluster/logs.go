package cluster

import (
	"bufio"
	"bytes"
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
	"time"

	"bonsai/pkg/cluster/host"
)

// LogOptions say what of a log is printed.
type LogOptions struct {
	// Node is the node of a process that nodes have; "" if the process says it, or there is one node.
	Node   string
	Follow bool
	// Tail is how many of the last lines are printed, all if it is negative. Since leaves out what is older.
	Tail  int
	Since time.Time
}

// LogNames returns the processes that have a log, in order: "etcd", "n1-kubelet", …
func LogNames(dataDir string) []string { return slices.Sorted(maps.Keys(logPaths(dataDir))) }

// logPaths returns where the processes' logs are, by the processes' names.
func logPaths(dataDir string) map[string]string {
	logs := layout(dataDir).at("logs")
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
		if _, component, onNode := strings.Cut(name, "-"); onNode && nodeName.MatchString(name) && component == process {
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

// PrintLog prints the log of a process, from its oldest file on, as far as o does not leave it out, and then, if o says so, what is added,
// over the change from one file to the next, until ctx ends.
func PrintLog(ctx context.Context, dataDir, process string, o LogOptions, out io.Writer) error {
	name, err := findLog(LogNames(dataDir), process, o.Node)
	if err != nil {
		return err
	}
	path := logPaths(dataDir)[name]
	files, err := openLogs(path)
	if err != nil {
		return err
	}
	current := files[0]
	defer func() { current.Close() }()
	var all []io.Reader
	for _, f := range slices.Backward(files) {
		all = append(all, f)
	}
	err = o.print(io.MultiReader(all...), out)
	for _, f := range files[1:] {
		f.Close()
	}
	if err != nil || !o.Follow {
		return err
	}
	const lookEvery = 100 * time.Millisecond
	return host.Poll(ctx, lookEvery, func() (bool, error) {
		next, err := successor(current, path)
		// All of the current file is read after its successor is there: nothing is added to it any more.
		if _, err := io.Copy(out, current); err != nil {
			return false, err
		}
		if next != nil {
			current.Close()
			current = next
			_, err = io.Copy(out, current)
		}
		return false, err
	})
}

// print copies what o does not leave out.
func (o LogOptions) print(in io.Reader, out io.Writer) error {
	if o.Tail < 0 && o.Since.IsZero() {
		_, err := io.Copy(out, in)
		return err
	}
	var last [][]byte // the newest, if only some are wanted
	young := o.Since.IsZero()
	for r := bufio.NewReader(in); ; {
		line, err := r.ReadBytes('\n')
		if at, ok := lineTime(line); ok && !young {
			young = !at.Before(o.Since) // a line without a time belongs to the one before
		}
		switch {
		case len(line) == 0 || !young || o.Tail == 0:
		case o.Tail < 0:
			if _, err := out.Write(line); err != nil {
				return err
			}
		default:
			if last = append(last, line); len(last) == 2*o.Tail {
				last = slices.Clone(last[o.Tail:])
			}
		}
		if err == io.EOF {
			_, err := out.Write(bytes.Join(last[max(0, len(last)-max(0, o.Tail)):], nil))
			return err
		}
		if err != nil {
			return err
		}
	}
}

// lineStamp is the time in a line: of our components and containerd, and of etcd.
var lineStamp = regexp.MustCompile(`(?:time="?|"ts":")(\d{4}-\d\d-\d\dT[0-9:.]+(?:Z|[+-]\d\d:\d\d))`)

// lineTime returns when a line was written, if it says that.
func lineTime(line []byte) (time.Time, bool) {
	m := lineStamp.FindSubmatch(line)
	if m == nil {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339Nano, string(m[1]))
	return at, err == nil
}

// openLogs opens the current log and then the old ones, youngest first, leaving out what a rotation meanwhile shows twice.
func openLogs(path string) ([]*os.File, error) {
	var files []*os.File
	for i := 0; i <= oldLogs; i++ {
		f, err := os.Open(oldLog(path, i))
		if os.IsNotExist(err) && i > 0 {
			break
		}
		if err == nil && len(files) > 0 && sameFile(f, files[len(files)-1]) {
			f.Close()
			continue
		}
		if err != nil {
			for _, f := range files {
				f.Close()
			}
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// successor opens the file that has taken the place of an open log, or returns nil if there is none.
func successor(current *os.File, path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, host.IgnoreMissing(err) // between two steps of a rotation, or the cluster is gone
	}
	if sameFile(f, current) {
		return nil, f.Close()
	}
	return f, nil
}

func sameFile(a, b *os.File) bool {
	x, errX := a.Stat()
	y, errY := b.Stat()
	return errX == nil && errY == nil && os.SameFile(x, y)
}
