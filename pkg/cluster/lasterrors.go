package cluster

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"strings"
	"time"
)

const (
	// errorsWithin is how much of the end of a log is searched for errors, in bytes.
	errorsWithin = 64 << 10
	// errorsShown is how many of the last errors are shown of one process, and errorLength how much of each, in bytes.
	errorsShown, errorLength = 3, 500
)

// levelField is the level in a line of our components.
var levelField = regexp.MustCompile(`(?:^| )level=(ERROR|WARN)(?: |$)`)

// nodesErrors returns the last errors of the kubelets since a time, for a start that waits for nodes in vain: a kubelet that runs and
// cannot do its work never ends, so that there are no last words. It is "" if no kubelet logged one.
func (c Config) nodesErrors(since time.Time) string {
	var text strings.Builder
	for _, name := range c.nodeNames() {
		lines := lastErrors(c.layout().nodeLog(name, "kubelet"), since)
		if len(lines) > 0 {
			text.WriteString("\nthe last errors of " + name + "-kubelet:\n  " + strings.Join(lines, "\n  "))
		}
	}
	return text.String()
}

// lastErrors returns the last errors in the log at path since a time, or without any the last warnings. A log that cannot be
// read has none: what is wrong is told already.
func lastErrors(path string, since time.Time) []string {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil
	}
	end := make([]byte, min(size, errorsWithin))
	n, _ := f.ReadAt(end, size-int64(len(end))) // what was read counts
	found := map[string][]string{}
	for line := range bytes.SplitSeq(end[:n], []byte("\n")) {
		level := levelField.FindSubmatch(line)
		if at, ok := lineTime(line); level != nil && ok && !at.Before(since) {
			found[string(level[1])] = append(found[string(level[1])], string(line[:min(len(line), errorLength)]))
		}
	}
	lines := found["ERROR"]
	if len(lines) == 0 {
		lines = found["WARN"]
	}
	return lines[max(0, len(lines)-errorsShown):]
}
