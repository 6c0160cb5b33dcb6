// Package logs reads and keeps the log files of containers: it parses the CRI log format, serves what `kubectl logs`
// asks for (following a file across its rotation), rotates files that grow too large and removes those that are not
// needed.
//
// The format: https://github.com/kubernetes/design-proposals-archive/blob/main/node/kubelet-cri-logging.md.
package logs

import (
	"bytes"
	"errors"
	"fmt"
	"time"
)

// logLine is one record of a log file: a line of output, or a part of a long one.
type logLine struct {
	time time.Time
	// stream is "stdout" or "stderr".
	stream string
	// partial records are continued by the next record of the stream.
	partial bool
	// content ends with the newline of the output, which partial records do not have.
	content []byte
}

// maxRecord bounds the length of a record. Runtimes split output at 16 KiB, so that a longer one is no log.
const maxRecord = 1 << 20

var errRecord = errors.New("not a CRI log record")

// parse reads one record with or without its newline: "<RFC 3339 time> <stream> <tags> <content>". Content refers to
// record.
func parse(record []byte) (logLine, error) {
	record = bytes.TrimSuffix(record, []byte("\n"))
	stamp, rest, ok := bytes.Cut(record, []byte(" "))
	if !ok {
		return logLine{}, fmt.Errorf("%w: no timestamp", errRecord)
	}
	at, err := time.Parse(time.RFC3339Nano, string(stamp))
	if err != nil {
		return logLine{}, fmt.Errorf("%w: %w", errRecord, err)
	}
	stream, rest, ok := bytes.Cut(rest, []byte(" "))
	if s := string(stream); !ok || s != "stdout" && s != "stderr" {
		return logLine{}, fmt.Errorf("%w: unexpected stream type %q", errRecord, stream)
	}
	tags, content, ok := bytes.Cut(rest, []byte(" "))
	if !ok {
		return logLine{}, fmt.Errorf("%w: no tags", errRecord)
	}
	l := logLine{time: at, stream: string(stream)}
	first, _, _ := bytes.Cut(tags, []byte(":"))
	switch string(first) {
	case "P":
		l.partial = true
		l.content = content
	case "F":
		l.content = append(content[:len(content):len(content)], '\n')
	default:
		return logLine{}, fmt.Errorf("%w: unexpected tag %q", errRecord, first)
	}
	return l, nil
}
