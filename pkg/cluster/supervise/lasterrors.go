package supervise

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"time"
)

const (
	// errorsWithin is the size of the end of a log that is searched for errors, in bytes.
	errorsWithin = 64 << 10
	// errorsShown is the number of last errors that are shown for one process, and errorLength bounds each, in bytes.
	errorsShown, errorLength = 3, 500
)

// levelField matches the level in a line of our components.
var levelField = regexp.MustCompile(`(?:^| )level=(ERROR|WARN)(?: |$)`)

// LastErrors returns the last errors in the log at path since a time or, if there are none, the last warnings. A log
// that cannot be read has none.
//
// A start that waits too long prints them for the kubelets. It reads the end of the current file alone, and so finds
// nothing older than the last rotation.
func LastErrors(path string, since time.Time) []string {
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

// lineStamp matches the time in a line of our components, of containerd, or of etcd.
var lineStamp = regexp.MustCompile(`(?:time="?|"ts":")(\d{4}-\d\d-\d\dT[0-9:.]+(?:Z|[+-]\d\d:\d\d))`)

// lineTime returns the time in a line, if it has one.
func lineTime(line []byte) (time.Time, bool) {
	m := lineStamp.FindSubmatch(line)
	if m == nil {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339Nano, string(m[1]))
	return at, err == nil
}
