package why

import (
	"context"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bonsai/pkg/safetext"
)

// Log names the log of a container: with Previous, that of the run before its present one.
type Log struct {
	Namespace, Pod, Container string
	Previous                  bool
}

// Bounds of what is read of a log: lines, bytes of all lines, and bytes of one.
const (
	LogLines    = 20
	LogBytes    = 64 << 10
	maxLogWidth = 2048
)

// noLog matches what a kubelet sends in place of a log that its runtime has removed already.
var noLog = regexp.MustCompile(`^unable to retrieve container logs for \w+://`)

// LastLines returns the last lines of a container's log without control characters, the newest last, none if there are
// none. What could not be read is in the answer's Unseen; a log that is gone is no such thing.
func (w *World) LastLines(ctx context.Context, l Log) []string {
	if lines, ok := w.logs[l]; ok {
		return lines
	}
	text, err := w.source.Log(ctx, l)
	switch {
	case apierrors.IsForbidden(err):
		w.Note("You may not read the log of pod " + l.Pod + " in namespace " + l.Namespace + ".")
	case err != nil && !apierrors.IsNotFound(err) && !apierrors.IsBadRequest(err): // these say that there is no log
		w.Note("Reading the log of pod " + l.Pod + " in namespace " + l.Namespace + " failed: " +
			safetext.Text(err.Error()) + ".")
	}
	lines := slices.DeleteFunc(plainLines(text), func(line string) bool { return noLog.MatchString(line) })
	w.logs[l] = lines
	return lines
}

// plainLines are the last LogLines lines of a text that are not empty.
func plainLines(text string) (lines []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(safetext.Line(line, maxLogWidth))
		if line != "" {
			lines = append(lines, line)
		}
	}
	return lines[max(len(lines)-LogLines, 0):]
}
