package supervise

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"bonsai/pkg/lines"
)

// A process's log is <name>.log and, older, <name>.log.1 and <name>.log.2. Its size has a bound, however long the
// cluster lives: three files of a little over maxLogSize.
const (
	maxLogSize = 8 << 20 // bytes; a file ends with the line that reaches it
	oldLogs    = 2
	// lastWords is how much of the end of a process's output stays in memory, in bytes: on a full disk it is the only
	// copy.
	lastWords = 1 << 10
)

// LogFile is a log that several goroutines may write to. Its writes always succeed: what a full disk does not take is
// lost to the file. An error would stop the copying of the writer's pipe, and the process would block when the pipe is
// full.
type LogFile struct {
	path  string
	limit int64
	// opened, if set, is called with every file that becomes the current one.
	opened func(*os.File) error

	mu   sync.Mutex // writing and rotating are one step each: several goroutines write, and words reads
	file *os.File
	to   lines.Writer // writes to file
	size int64
	last []byte // the end of what was written, even of what the disk did not take
}

// OpenLog opens the log at path, to go on at its end.
func OpenLog(path string) (*LogFile, error) {
	l := &LogFile{path: path, limit: maxLogSize}
	return l, l.begin()
}

// begin opens the file of an earlier life. What it was killed in the middle of is a line of its own.
func (l *LogFile) begin() error {
	l.to.Notice = func(lost int) []byte {
		return fmt.Appendf(nil, "(%d lines are lost: the disk did not take them)\n", lost)
	}
	if err := l.open(); err != nil {
		return err
	}
	if cut, err := lines.Cut(l.path); err == nil && cut {
		l.to.Resume()
	}
	return nil
}

// open opens the current file.
func (l *LogFile) open() error {
	if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && l.opened != nil {
		err = l.opened(f)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file, l.size = f, info.Size()
	l.to.Turn(counted{f, &l.size})
	return nil
}

// Write never fails: see LogFile.
func (l *LogFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = append(l.last, p[max(0, len(p)-lastWords):]...)
	l.last = l.last[max(0, len(l.last)-lastWords):]
	rest := p
	if l.size+int64(len(p)) > l.limit {
		line := bytes.LastIndexByte(p, '\n') + 1
		l.append(p[:line])
		rest = p[line:]
		if line > 0 || l.size > l.limit+lastWords { // a line without an end must not keep the file growing
			l.rotate()
		}
	}
	l.append(rest)
	return len(p), nil
}

// append writes to the current file. What the disk does not take is lost.
func (l *LogFile) append(p []byte) {
	if len(p) > 0 {
		_, _ = l.to.Write(p) // see LogFile
	}
}

// counted counts the bytes of a file.
type counted struct {
	file io.Writer
	size *int64
}

// Write implements io.Writer.
func (c counted) Write(p []byte) (int, error) {
	n, err := c.file.Write(p)
	*c.size += int64(n)
	return n, err
}

// rotate makes the current file the youngest of the old ones. If that fails, the current file grows on: a log that is
// too large is better than none. It renames the oldest file first, over which the next one goes. Between the last
// rename and the opening there is no current file; readers that follow look again (successor).
func (l *LogFile) rotate() {
	for i := oldLogs; i > 0; i-- {
		if err := os.Rename(oldLog(l.path, i-1), oldLog(l.path, i)); err != nil && !os.IsNotExist(err) {
			return
		}
	}
	before := l.file
	if l.open() == nil {
		before.Close()
	}
}

// oldLog returns the path of the i-th old file of a log; 0 is the current one.
func oldLog(path string, i int) string {
	if i == 0 {
		return path
	}
	return fmt.Sprintf("%s.%d", path, i)
}

// words returns the end of what was written since the log was opened: whole lines, if there is one.
func (l *LogFile) words() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	words := l.last
	if _, after, found := bytes.Cut(words, []byte("\n")); found && len(words) == lastWords && len(after) > 0 {
		words = after // the first line is cut
	}
	return string(bytes.TrimSpace(words))
}

// Close closes the current file.
func (l *LogFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}

// OpenStderrLog is OpenLog for this process's own log. Its standard error follows the log over rotations, for what the
// Go runtime writes at the end. What is written to standard error goes past the bound on the size, which counts only
// Write.
func OpenStderrLog(path string) (*LogFile, error) {
	l := &LogFile{path: path, limit: maxLogSize, opened: func(f *os.File) error {
		return unix.Dup3(int(f.Fd()), int(os.Stderr.Fd()), 0)
	}}
	return l, l.begin()
}

// WordsSince returns the end of what was written to the log at path after its first before bytes, or "" if it cannot be
// read. supervisor.Launch uses it for the words of a supervisor that ended before it answered.
func WordsSince(path string, before int64) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	words := make([]byte, min(max(0, size-before), lastWords))
	n, _ := f.ReadAt(words, size-int64(len(words))) // what was read counts
	return string(bytes.TrimSpace(words[:n]))
}
