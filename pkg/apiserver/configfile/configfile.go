// Package configfile follows a configuration file of the server that holds as soon as it is changed: a good one is put
// in force, a bad one changes nothing, is logged and counted.
package configfile

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"
)

const (
	lookEvery  = time.Second
	retryEvery = time.Minute // a file that is not good
)

// maxFile bounds a file, in bytes.
const maxFile = 1 << 20

// File is a file that may change. Its methods belong to one goroutine.
type File struct {
	path, what string
	metrics    *Metrics
	now        func() time.Time
	log        *slog.Logger
	looked     os.FileInfo // at the last look
	failed     time.Time   // when a changed file was not taken; zero: it was
}

// New returns the file of path, which people know as what ("authorization configuration"), before it is read for the
// first time: Follow sees what is written since.
func New(path, what string, m *Metrics, now func() time.Time, log *slog.Logger) *File {
	f := &File{path: path, what: what, metrics: m, now: now, log: log}
	f.looked, _ = os.Stat(path) // a file that is missing is Read's to report
	return f
}

// Hash returns the hash of a text, whose parts follow each other, as metrics show it.
func Hash(parts ...[]byte) string {
	h := sha256.New()
	for _, part := range parts {
		h.Write(part)
	}
	return fmt.Sprintf("sha256:%x", h.Sum(nil))
}

// Read returns the content.
func (f *File) Read() ([]byte, error) { return Read(f.path) }

// Read returns the content of a file that is not followed.
func Read(path string) ([]byte, error) {
	r, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, errors.New("it has more than 1 MiB")
	}
	return text, nil
}

// Sleep waits; it returns false if ctx ended.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Follow calls reload when the file has changed, and again from time to time after an error, until ctx ends. reload
// returns the hash of what it has put in force; "": the content is in force already.
func (f *File) Follow(ctx context.Context, reload func(context.Context) (hash string, err error)) {
	for Sleep(ctx, lookEvery) {
		f.look(ctx, reload)
	}
}

func (f *File) look(ctx context.Context, reload func(context.Context) (string, error)) {
	retry := !f.failed.IsZero() && f.now().Sub(f.failed) >= retryEvery
	changed := f.Changed()
	if !changed && !retry {
		return
	}
	f.looked, _ = os.Stat(f.path) // if it is gone, reload fails and one error tells
	hash, err := reload(ctx)
	switch {
	case err == nil && hash == "":
		f.failed = time.Time{}
	case err == nil:
		f.failed = time.Time{}
		f.metrics.reloaded(true, f.now())
		f.metrics.Applied(hash)
		f.log.Info("the "+f.what+" is taken over", "path", f.path)
	case ctx.Err() == nil:
		f.failed = f.now()
		f.metrics.reloaded(false, f.failed)
		f.log.Error("the "+f.what+" is not taken over: the earlier one stays in force", "err", err)
	}
}

// Changed reports whether the file is another than at the last look.
func (f *File) Changed() bool {
	info, err := os.Stat(f.path)
	if err != nil {
		info = nil
	}
	return !Same(info, f.looked)
}

// Same reports whether a file has not changed between two looks at it; nil stands for one that could not be found. A
// file that takes the place of another one is a change, even with the same size and time.
func Same(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && os.SameFile(a, b)
}

// AwaitChange returns true when the file has changed, and false if ctx ends before.
func (f *File) AwaitChange(ctx context.Context) bool {
	for Sleep(ctx, lookEvery) {
		if f.Changed() {
			return true
		}
	}
	return false
}
