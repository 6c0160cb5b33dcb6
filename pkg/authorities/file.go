package authorities

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// checkEvery is how often at most a File looks whether its file changed.
const checkEvery = time.Second

// File is a PEM bundle of certificate authorities in a file, read again when the file changes. A new content that holds
// no certificate is not taken over: the last good one stays. It is safe for concurrent use.
type File struct {
	path string
	now  func() time.Time

	mu      sync.Mutex
	checked time.Time
	stat    os.FileInfo
	held    Held
}

// NewFile reads the bundle in path.
func NewFile(path string) (*File, error) {
	f := &File{path: path, now: time.Now}
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
		if st, err := os.Stat(f.path); err == nil && !sameFile(st, f.stat) {
			_ = f.read() // a file that is half written is read again once its size or time moves
		}
	}
	return f.held.Bundle()
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
