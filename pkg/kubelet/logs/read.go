package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/fsnotify/fsnotify"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/filetree"
	"bonsai/pkg/kubelet/runtime"
)

// Options choose what of a log is read.
type Options struct {
	Follow     bool
	Timestamps bool
	Since      time.Time // zero: from the beginning
	Tail       int64     // last records only; negative: all
	Limit      int64     // bytes of output; negative: no limit
	Stream     string    // "stdout" or "stderr"; empty: both
}

// OptionsOf translates the API's options as of now.
func OptionsOf(o *corev1.PodLogOptions, now time.Time) Options {
	out := Options{Follow: o.Follow, Timestamps: o.Timestamps, Tail: -1, Limit: -1}
	switch {
	case o.SinceSeconds != nil:
		out.Since = now.Add(-runtime.Seconds(*o.SinceSeconds))
	case o.SinceTime != nil:
		out.Since = o.SinceTime.Time
	}
	if o.TailLines != nil {
		out.Tail = *o.TailLines
	}
	if o.LimitBytes != nil {
		out.Limit = *o.LimitBytes
	}
	if o.Stream != nil {
		switch *o.Stream {
		case corev1.LogStreamStdout:
			out.Stream = "stdout"
		case corev1.LogStreamStderr:
			out.Stream = "stderr"
		}
	}
	return out
}

// Readers read logs. Those that follow one share what tells them about changes.
type Readers struct{ changes changes }

// NewReaders returns Readers for a node.
func NewReaders() *Readers { return &Readers{changes{open: fsnotify.NewWatcher}} }

// Read writes the log at path to stdout and stderr as the options say. With Follow it goes on until running reports
// that the container has ended and all its output is read, or ctx is done (which is no error).
//
// The server's handler of a request calls it; ctx ends with the client's connection. Memory is bounded by one chunk of
// 32 KiB and one record of maxRecord.
func (x *Readers) Read(ctx context.Context, path string, o Options, running func(context.Context) (bool, error),
	stdout, stderr io.Writer) error {
	if o.Limit < 0 {
		o.Limit = math.MaxInt64
	}
	f, err := filetree.OpenFile(path)
	if err != nil {
		return fmt.Errorf("failed to open log file %q: %w", path, err)
	}
	r := &reader{path: path, file: f,
		out: writer{o: o, stdout: stdout, stderr: stderr, left: o.Limit, inside: map[string]bool{}}}
	defer func() { r.file.Close() }()
	if o.Tail == 0 && !o.Follow {
		return nil
	}
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("find the end of %q: %w", path, err)
	}
	var start int64
	if o.Tail >= 0 {
		if start, err = tailStart(f, end, o.Tail); err != nil {
			return fmt.Errorf("find the last lines of %q: %w", path, err)
		}
	}
	if _, err := f.Seek(start, io.SeekStart); err != nil {
		return fmt.Errorf("go to the last lines of %q: %w", path, err)
	}
	if !o.Follow {
		return r.upTo(ctx, end-start)
	}
	return r.follow(ctx, &x.changes, running)
}

// reader reads one log file, and its successor after a rotation.
type reader struct {
	path string
	file *os.File
	buf  []byte // read, not written yet: less than one record
	out  writer
}

// errLimit ends the reading: all bytes asked for are written.
var errLimit = errors.New("limit reached")

// upTo writes all whole records of the next n bytes: what there was when the log was asked for. What the container
// writes meanwhile is left out, or the last lines could be more than were asked for, and a busy container's log would
// have no end.
func (r *reader) upTo(ctx context.Context, n int64) error {
	err := r.drain(ctx, io.LimitReader(r.file, n))
	if errors.Is(err, errLimit) || ctx.Err() != nil {
		return nil
	}
	return err
}

// follow reads until the container has ended, the limit is reached or ctx ends. The order of a round matters: whether
// the container runs, then whether the file was rotated, then the reading. What was written before a question is read
// after it, so nothing is lost between the last reading and the end.
func (r *reader) follow(ctx context.Context, c *changes, running func(context.Context) (bool, error)) error {
	changed, wait, leave := c.follow(r.path)
	defer leave()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	var asked time.Time
	for idle := true; ; {
		alive := true
		if idle && time.Since(asked) >= followWait {
			var err error
			// asked before reading: what a dead container wrote is then all there
			if alive, err = running(ctx); err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return err
			}
			asked = time.Now()
		}
		rotated := r.rotated()
		if err := r.drain(ctx, r.file); err != nil {
			if errors.Is(err, errLimit) || ctx.Err() != nil {
				return nil
			}
			return err
		}
		if rotated {
			if err := r.reopen(); err != nil {
				return err
			}
			idle, asked = !alive, time.Time{} // the new file has what a dead container wrote last
			continue
		}
		if !alive {
			return nil
		}
		timer.Reset(wait)
		idle = false
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			idle = true
		case <-changed:
		}
	}
}

// drain writes whole records until from, the file or a part of it, ends.
func (r *reader) drain(ctx context.Context, from io.Reader) error {
	chunk := make([]byte, 32<<10)
	for ctx.Err() == nil {
		n, err := from.Read(chunk)
		r.buf = append(r.buf, chunk[:n]...)
		if werr := r.flush(); werr != nil {
			return werr
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read log file %q: %w", r.path, err)
		}
	}
	return ctx.Err()
}

// flush writes the whole records of the buffer.
func (r *reader) flush() error {
	rest := r.buf
	for {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			break
		}
		if err := r.out.record(rest[:end+1]); err != nil {
			return err
		}
		rest = rest[end+1:]
	}
	if len(rest) > maxRecord {
		return fmt.Errorf("log file %q: %w: longer than %d bytes", r.path, errRecord, maxRecord)
	}
	r.buf = append(r.buf[:0], rest...)
	return nil
}

// rotated reports whether the path is another file by now: then the runtime writes there, and ours is complete.
func (r *reader) rotated() bool {
	now, err := os.Stat(r.path)
	if err != nil {
		return false // between the renaming and the reopening
	}
	ours, err := r.file.Stat()
	return err == nil && !os.SameFile(now, ours)
}

func (r *reader) reopen() error {
	f, err := filetree.OpenFile(r.path)
	if err != nil {
		return fmt.Errorf("failed to open log file %q: %w", r.path, err)
	}
	r.file.Close()
	r.file, r.buf = f, r.buf[:0]
	return nil
}

// writer picks and formats records.
type writer struct {
	o              Options
	stdout, stderr io.Writer
	left           int64
	inside         map[string]bool // by stream: inside a line, which has its timestamp already
}

func (w *writer) record(record []byte) error {
	l, err := parse(record)
	if err != nil {
		return nil // a broken record hides no others
	}
	continued := w.inside[l.stream]
	w.inside[l.stream] = l.partial
	if l.time.Before(w.o.Since) || w.o.Stream != "" && w.o.Stream != l.stream {
		return nil
	}
	out := l.content
	if w.o.Timestamps && !continued {
		out = append(append(l.time.AppendFormat(nil, rfc3339Nano), ' '), out...)
	}
	to := w.stdout
	if l.stream == "stderr" {
		to = w.stderr
	}
	if int64(len(out)) > w.left {
		out = out[:w.left]
	}
	n, err := to.Write(out)
	w.left -= int64(n)
	if err != nil {
		return fmt.Errorf("write to the reader of the log: %w", err)
	}
	if w.left <= 0 {
		return errLimit
	}
	return nil
}

// rfc3339Nano keeps all nine digits, so that timestamps line up and sort.
const rfc3339Nano = "2006-01-02T15:04:05.000000000Z07:00"

// tailStart is the offset at which the last n lines of the file's first size bytes begin; a last line without newline
// does not count as one.
//
// It reads backwards in blocks, so the cost follows the lines that are asked for, not the size of the file.
func tailStart(f io.ReadSeeker, size, n int64) (int64, error) {
	const block = 4096
	buf := make([]byte, block)
	var seen int64
	for end := size; end > 0; {
		start := max(end-block, 0)
		if _, err := f.Seek(start, io.SeekStart); err != nil {
			return 0, err
		}
		part := buf[:end-start]
		if _, err := io.ReadFull(f, part); err != nil {
			return 0, err
		}
		for i := len(part) - 1; i >= 0; i-- {
			if part[i] != '\n' {
				continue
			}
			if seen == n {
				return start + int64(i) + 1, nil
			}
			seen++
		}
		end = start
	}
	return 0, nil
}
