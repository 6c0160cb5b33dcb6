package supervise

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"strconv"
	"time"
)

const (
	// errorsWithin is the size of the end of a log that is searched for errors, in bytes.
	errorsWithin = 64 << 10
	// errorsShown is the number of last errors that are shown for one process, and errorLength bounds each, in bytes.
	errorsShown, errorLength = 3, 500
)

// severity matches how a line of our components begins that may tell of an error or a warning: in the text format E or
// W and the date, in JSON the time.
var severity = regexp.MustCompile(`^(?:([EW])\d{4} |\{"ts":\d)`)

// severityOf returns 'E' for a line of an error, 'W' for one of a warning, and 0 for others. In JSON, warnings have no
// mark of their own.
func severityOf(line []byte) byte {
	m := severity.FindSubmatch(line)
	switch {
	case m == nil:
		return 0
	case m[1] != nil:
		return m[1][0]
	case bytes.Contains(line, []byte(`,"v":`)): // what tells of no error has a verbosity
		return 0
	}
	return 'E'
}

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
	found := map[byte][]string{}
	for line := range bytes.SplitSeq(end[:n], []byte("\n")) {
		level := severityOf(line)
		if at, ok := lineTime(line, since); level != 0 && ok && !at.Before(since) {
			found[level] = append(found[level], string(line[:min(len(line), errorLength)]))
		}
	}
	lines := found['E']
	if len(lines) == 0 {
		lines = found['W']
	}
	return lines[max(0, len(lines)-errorsShown):]
}

// lineStamp matches the time in a line of bonsai itself, of containerd, or of etcd. klogStamp matches the one with
// which lines of components begin in the text format, and jsonStamp the one in JSON, in milliseconds.
var (
	lineStamp = regexp.MustCompile(`(?:time="?|"ts":")(\d{4}-\d\d-\d\dT[0-9:.]+(?:Z|[+-]\d\d:\d\d))`)
	klogStamp = regexp.MustCompile(`^[IWEF](\d{4} \d\d:\d\d:\d\d\.\d{6}) `)
	jsonStamp = regexp.MustCompile(`^\{"ts":(\d{1,15})(?:\.\d+)?,`)
)

// lineTime returns the time in a line, if it has one. Lines of klog have no year: it is the one in which the line is
// nearest to a time.
func lineTime(line []byte, near time.Time) (time.Time, bool) {
	if m := klogStamp.FindSubmatch(line); m != nil {
		return nearest(string(m[1]), near)
	}
	if m := jsonStamp.FindSubmatch(line); m != nil {
		ms, err := strconv.ParseInt(string(m[1]), 10, 64)
		return time.UnixMilli(ms), err == nil
	}
	m := lineStamp.FindSubmatch(line)
	if m == nil {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339Nano, string(m[1]))
	return at, err == nil
}

// nearest reads a time of klog, which is of this machine's zone, as the one of its year that is nearest to near.
func nearest(stamp string, near time.Time) (at time.Time, ok bool) {
	for year := near.Year() - 1; year <= near.Year()+1; year++ {
		t, err := time.ParseInLocation("2006 0102 15:04:05.000000", strconv.Itoa(year)+" "+stamp, time.Local)
		// February 29 is not in every year.
		if err == nil && (!ok || t.Sub(near).Abs() < at.Sub(near).Abs()) {
			at, ok = t, true
		}
	}
	return at, ok
}
