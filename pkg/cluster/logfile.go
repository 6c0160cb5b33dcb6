package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// A process's log is <name>.log and, older, <name>.log.1 and <name>.log.2: bounded, however long the cluster lives.
const (
	maxLogSize = 8 << 20 // bytes; a file ends with the line that reaches it
	oldLogs    = 2
	// lastWords is how much of the end of a process's output is remembered, in bytes.
	lastWords = 1 << 10
)

// logFile is a log that many may write to. It takes whatever it is given: what a full disk does not hold is lost to the file,
// not an error of the writer, whose pipe must not fill up.
type logFile struct {
	path  string
	limit int64
	// opened, if set, is told of every file that becomes the current one.
	opened func(*os.File) error

	mu   sync.Mutex // writing and rotating are one step each: several goroutines write, and words reads
	file *os.File
	size int64
	last []byte // the end of what was written, even of what the disk did not take
}

func openLog(path string) (*logFile, error) {
	l := &logFile{path: path, limit: maxLogSize}
	return l, l.open()
}

// open opens the current file, to go on at its end.
func (l *logFile) open() error {
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
	return nil
}

// Write never fails: see logFile.
func (l *logFile) Write(p []byte) (int, error) {
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

func (l *logFile) append(p []byte) {
	n, _ := l.file.Write(p) // see logFile
	l.size += int64(n)
}

// rotate makes the current file the youngest of the old ones. If that fails the current one goes on.
func (l *logFile) rotate() {
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

// oldLog is the i-th old log; 0 is the current one.
func oldLog(path string, i int) string {
	if i == 0 {
		return path
	}
	return fmt.Sprintf("%s.%d", path, i)
}

// words returns the end of what was written since the log was opened: whole lines, if there is one.
func (l *logFile) words() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	words := l.last
	if _, after, found := bytes.Cut(words, []byte("\n")); found && len(words) == lastWords && len(after) > 0 {
		words = after // the first line is cut
	}
	return string(bytes.TrimSpace(words))
}

func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}

// OpenLog opens the supervisor's own log. This process's standard error follows it, for what the Go runtime says at the end.
func OpenLog(dataDir string) (io.WriteCloser, error) {
	l := &logFile{path: layout(dataDir).log(supervisorName), limit: maxLogSize, opened: func(f *os.File) error {
		return unix.Dup3(int(f.Fd()), int(os.Stderr.Fd()), 0)
	}}
	return l, l.open()
}

// OpenServiceLog is OpenLog for a supervisor whose standard error somebody else keeps: a service manager, or a user who looks on.
func OpenServiceLog(dataDir string) (io.WriteCloser, error) {
	return openLog(layout(dataDir).log(supervisorName))
}

// wordsSince is the end of what was written to a log after its first so many bytes, "" if it cannot be read.
func wordsSince(path string, before int64) string {
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
