package authorities

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// checkEvery is how often at most a File looks whether its file changed.
const checkEvery = time.Second

// File is a PEM bundle of certificate authorities in a file, read again when the file changes. A new content that holds
// no certificate is not taken over: the last good one stays, and the log says so. It is safe for concurrent use.
type File struct {
	path string
	now  func() time.Time
	log  *slog.Logger

	mu      sync.Mutex
	checked time.Time
	stat    os.FileInfo
	failure string // of the last attempt, which has been logged; "": it succeeded
	held    Held
}

// NewFile reads the bundle in path. What goes wrong later, when the file changes, goes to log.
func NewFile(path string, log *slog.Logger) (*File, error) {
	f := &File{path: path, now: time.Now, log: log}
	if err := f.read(); err != nil {
		return nil, err
	}
	return f, nil
}

// Bundle returns the bundle as the file has it, not older than about a second.
func (f *File) Bundle() Bundle {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.now(); now.Sub(f.checked) >= checkEvery {
		f.checked = now
		f.refresh()
	}
	return f.held.Bundle()
}

// refresh reads the file if it changed. A file that is half written is read again once its size or time moves. Each new
// reason for a failure is logged once.
func (f *File) refresh() {
	st, err := os.Stat(f.path)
	if err == nil {
		if sameFile(st, f.stat) {
			return
		}
		err = f.read()
	}
	if err == nil {
		f.failure = ""
		f.log.Info("certificate authorities were read again", "file", f.path)
	} else if err.Error() != f.failure {
		f.failure = err.Error()
		f.log.Warn("certificate authorities could not be read again, and those from before stay in use",
			"file", f.path, "err", err)
	}
}

func sameFile(a, b os.FileInfo) bool {
	return a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && os.SameFile(a, b)
}

var _ Source = (*File)(nil)

func (f *File) read() error {
	st, err := os.Stat(f.path)
	if err != nil {
		return fmt.Errorf("reading certificate authorities: %w", err)
	}
	raw, err := os.ReadFile(f.path)
	if err != nil {
		return fmt.Errorf("reading certificate authorities: %w", err)
	}
	f.stat = st
	if err := f.held.Set(raw); err != nil {
		return fmt.Errorf("reading certificate authorities: %s: %w", f.path, err)
	}
	return nil
}
