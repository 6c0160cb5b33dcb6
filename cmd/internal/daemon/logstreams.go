package daemon

import (
	"io"
	"sync"

	"bonsai/pkg/lines"
)

// stream takes the lines of a log, one a call, and writes them whole. A log that cannot be written, as on a full disk,
// never holds up or ends its component: what it does not take is lost, and the stream says so when it takes lines
// again.
type stream struct {
	mu sync.Mutex
	to lines.Writer
	// size bounds buffered, in bytes: the lines that are before to. 0: each line is written at once.
	size     int
	buffered []byte
}

var _ io.Writer = (*stream)(nil)

// newStream writes to w, by way of a buffer of so many bytes, if there are any. lost makes the line that says how many
// lines were lost.
func newStream(w io.Writer, size int64, lost func(lines int) []byte) *stream {
	return &stream{to: lines.Writer{To: w, Notice: lost}, size: int(size)}
}

// Write implements io.Writer. It never fails: nobody could do anything about it, and zap would try to write the error
// into the same log.
func (s *stream) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.buffered)+len(line) > s.size {
		s.empty()
	}
	if len(line) > s.size {
		_, _ = s.to.Write(line) // which counts it
		return len(line), nil
	}
	s.buffered = append(s.buffered, line...)
	return len(line), nil
}

// flush writes what is buffered.
func (s *stream) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.empty()
	s.to.Recover()
}

// empty writes what is buffered. What cannot be written is lost: kept, it would push out newer lines.
func (s *stream) empty() {
	if len(s.buffered) > 0 {
		_, _ = s.to.Write(s.buffered) // which counts them
		s.buffered = s.buffered[:0]
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
