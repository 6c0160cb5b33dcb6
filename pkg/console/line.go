package console

import (
	"bufio"
	"context"
	"errors"
	"io"
)

// Bounds of the lines of watches. Nearly all are short, and a long one must be whole before it is sent, since lines of
// several watches share a response: so a page holds one long line at once, and its other watches wait with theirs.
const (
	// shortLine is what each watch may hold, in bytes.
	shortLine = 64 << 10
	// maxLine is the longest event, in bytes: an object, and what JSON adds to it.
	maxLine = 8 << 20
)

// errLongLine ends a watch with a line that is too long.
var errLongLine = errors.New("an event is too long")

// lineReader reads the lines of one watch.
type lineReader struct {
	from *bufio.Reader
	long chan struct{} // a slot for each long line that is held at once
}

func newLineReader(from io.Reader, long chan struct{}) *lineReader {
	return &lineReader{bufio.NewReaderSize(from, shortLine), long}
}

// next calls send with the next line, without its end. It returns io.EOF after the last one.
func (l *lineReader) next(ctx context.Context, send func(line []byte) error) error {
	part, err := l.from.ReadSlice('\n')
	switch {
	case err == nil:
		return send(part[:len(part)-1])
	case errors.Is(err, io.EOF) && len(part) > 0:
		return send(part)
	case !errors.Is(err, bufio.ErrBufferFull):
		return err
	}
	select {
	case l.long <- struct{}{}:
		defer func() { <-l.long }()
	case <-ctx.Done():
		return ctx.Err()
	}
	line := append([]byte(nil), part...)
	for errors.Is(err, bufio.ErrBufferFull) {
		part, err = l.from.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxLine {
			return errLongLine
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
	}
	return send(line)
}
