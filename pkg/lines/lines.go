// Package lines writes lines to logs that may fail for a while, such as those on a disk that is full.
package lines

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// Writer writes to a log. After a write that failed or was short, the next one begins a line of its own: no half line
// runs into a whole one. It keeps nothing of what the log did not take, and it goes on by itself: an error is that of
// one write. Its user lets one goroutine write at a time.
type Writer struct {
	To io.Writer
	// Notice, if set, makes the line that says how many lines were lost. It comes before the next line that can be
	// written.
	Notice func(lost int) []byte

	// open reports whether the log ends within a line, failed whether something was lost behind its end.
	open, failed bool
	lost         int
}

// Write implements io.Writer. The number of bytes is that of p.
func (w *Writer) Write(p []byte) (int, error) {
	n, err := 0, w.recover()
	if err == nil {
		n, err = w.put(p)
	}
	if err != nil {
		w.lost += max(1, bytes.Count(p[n:], []byte("\n")))
	}
	return n, err
}

// Recover writes what is to be said about lost lines, as far as the log takes it.
func (w *Writer) Recover() { _ = w.recover() } // what fails is tried again before the next line

// recover ends a half line and says what was lost.
func (w *Writer) recover() error {
	if w.failed && w.open {
		if _, err := w.put([]byte("\n")); err != nil {
			return err
		}
	}
	w.failed = false
	if w.lost > 0 && w.Notice != nil {
		if _, err := w.put(w.Notice(w.lost)); err != nil {
			return err
		}
	}
	w.lost = 0
	return nil
}

// put writes p and remembers how the log ends.
func (w *Writer) put(p []byte) (int, error) {
	n, err := w.To.Write(p)
	n = max(0, min(n, len(p)))
	if n > 0 {
		w.open = p[n-1] != '\n'
	}
	if n < len(p) && err == nil {
		err = io.ErrShortWrite
	}
	if err != nil {
		w.failed = true
	}
	return n, err
}

// Turn sends the lines that follow to another log, which must not end within a line.
func (w *Writer) Turn(to io.Writer) { w.To, w.open = to, false }

// Resume notes that the log may end within a line, as one whose writer was killed does: the first line begins with an
// end of line.
func (w *Writer) Resume() { w.open, w.failed = true, true }

// Cut reports whether the file at path ends within a line. What is no regular file does not.
func Cut(path string) (bool, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return false, err
	}
	f, err := os.Open(path)
	if errors.Is(err, os.ErrPermission) { // a log that may only be written
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	var last [1]byte
	if _, err := f.Seek(-1, io.SeekEnd); err != nil {
		return false, fmt.Errorf("look at the end of %s: %w", path, err)
	}
	if _, err := io.ReadFull(f, last[:]); err != nil {
		return false, fmt.Errorf("look at the end of %s: %w", path, err)
	}
	return last[0] != '\n', nil
}
