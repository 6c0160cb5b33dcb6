package daemon

import (
	"bufio"
	"io"
	"sync"
)

// stream takes the lines of a log, one a call, and writes them whole.
type stream struct {
	mu sync.Mutex
	to io.Writer
	// buffer is before to; nil: each line is written at once.
	buffer *bufio.Writer
}

var _ io.Writer = (*stream)(nil)

// newStream writes to w, by way of a buffer of so many bytes, if there are any.
func newStream(w io.Writer, size int64) *stream {
	s := &stream{to: w}
	if size > 0 {
		s.buffer = bufio.NewWriterSize(w, int(size))
	}
	return s
}

// Write implements io.Writer.
func (s *stream) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.buffer != nil {
		return s.buffer.Write(line)
	}
	return s.to.Write(line)
}

// flush writes what is buffered. An error has nowhere to go: it is the log that cannot be written.
func (s *stream) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.buffer != nil {
		s.buffer.Flush()
	}
}

// split sends lines of the text format that are of level info to one stream, and all others to another.
type split struct{ info, rest io.Writer }

var _ io.Writer = split{}

// Write implements io.Writer.
func (s split) Write(line []byte) (int, error) {
	if len(line) > 0 && line[0] == 'I' { // the first letter is the level's
		return s.info.Write(line)
	}
	return s.rest.Write(line)
}
