// Package persist keeps records over restarts, in files that only grow: segments.
//
// A segment is a sequence of frames: the length of a record (4 bytes), its CRC-32C (4 bytes), the record. Segments are
// numbered. When one is full the next begins, and the oldest are removed. Nothing is changed in place, so that a loss
// of power can only cost the end of the last segment: what cannot be read there is left out, and the process begins a
// new segment.
package persist

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// MaxRecord bounds a record. A length above is a broken frame.
	MaxRecord = 1 << 20
	// segments is how many full segments there are in the bytes that a log may have.
	segments = 16
	// buffered is how many bytes may wait for a write.
	buffered = 64 << 10
	// syncEvery is how often what was written is brought to the disk: a loss of power costs what came since. etcd often
	// has the same disk, and each sync makes it wait.
	syncEvery = 5 * time.Second
	head      = 8
	prefix    = "segment-"
	suffix    = ".traces"
)

// Log is a directory of segments. It is safe for concurrent use. Nobody waits for an error of the disk: it is logged
// and counted, and what could not be written is lost for the next start only.
type Log struct {
	dir      string
	maxBytes int64
	log      *slog.Logger
	table    *crc32.Table

	mu     sync.Mutex
	old    []segment // full ones, the oldest first
	number uint64    // of the segment that is written
	file   *os.File  // nil: it begins with the next record
	out    *bufio.Writer
	size   int64
	dirty  bool
	failed bool // the last write did; it is logged once
	errors uint64
}

// segment is a file that is not written any more.
type segment struct {
	number uint64
	size   int64
}

// Open reads which segments there are, in a directory that is made if it is missing, and bounds them to maxBytes.
//
// It cannot fail: a process that did not start for want of a disk would take its API away, and with it the deletion of
// namespaces. The log says what is wrong with the directory, which counts as an error of the disk.
func Open(dir string, maxBytes int64, log *slog.Logger) *Log {
	l := &Log{dir: dir, maxBytes: maxBytes, log: log, table: crc32.MakeTable(crc32.Castagnoli)}
	err := os.MkdirAll(dir, 0o700)
	entries, unread := os.ReadDir(dir)
	if err = errors.Join(err, unread); err != nil {
		l.errors++
		log.Error("the traces of the last process cannot be read", "dir", dir, "err", err)
	}
	for _, e := range entries {
		number, ok := numberOf(e.Name())
		info, err := e.Info()
		if !ok || err != nil || !info.Mode().IsRegular() {
			continue
		}
		l.old = append(l.old, segment{number, info.Size()})
		l.number = max(l.number, number+1)
	}
	slices.SortFunc(l.old, func(a, b segment) int {
		if a.number < b.number {
			return -1
		}
		return 1
	})
	l.trim()
	return l
}

// numberOf reads the number of a segment off its name, which is always as long: no other file is touched.
func numberOf(name string) (n uint64, ok bool) {
	text, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return 0, false
	}
	if text, ok = strings.CutSuffix(text, suffix); !ok || len(text) != 16 {
		return 0, false
	}
	if _, err := fmt.Sscanf(text, "%016x", &n); err != nil || n > 1<<62 {
		return 0, false
	}
	return n, fmt.Sprintf("%016x", n) == text
}

func (l *Log) path(number uint64) string {
	return filepath.Join(l.dir, fmt.Sprintf("%s%016x%s", prefix, number, suffix))
}

// Replay hands all records to take, in the order in which they were written. The bytes are valid until take returns.
// What is broken is logged and left out, with all that follows it in the same segment.
func (l *Log) Replay(take func(record []byte) error) {
	l.mu.Lock()
	old := slices.Clone(l.old)
	l.mu.Unlock()
	buf := make([]byte, 0, 4<<10)
	for _, s := range old {
		records, read, err := l.replay(s, &buf, take)
		if err != nil {
			l.log.Warn("the rest of a file of traces cannot be read and is left out", "file", l.path(s.number), "records",
				records, "bytes", read, "of", s.size, "err", err)
		}
	}
}

func (l *Log) replay(s segment, buf *[]byte, take func([]byte) error) (records int, read int64, err error) {
	f, err := os.Open(l.path(s.number))
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, buffered)
	for {
		var header [head]byte
		switch _, err := io.ReadFull(in, header[:]); {
		case errors.Is(err, io.EOF):
			return records, read, nil
		case err != nil:
			return records, read, err
		}
		n := binary.BigEndian.Uint32(header[:])
		if n == 0 || n > MaxRecord {
			return records, read, fmt.Errorf("a record of %d bytes", n)
		}
		if cap(*buf) < int(n) {
			*buf = make([]byte, n)
		}
		record := (*buf)[:n]
		if _, err := io.ReadFull(in, record); err != nil {
			return records, read, err
		}
		if crc32.Checksum(record, l.table) != binary.BigEndian.Uint32(header[4:]) {
			return records, read, errors.New("the checksum of a record differs")
		}
		if err := take(record); err != nil {
			return records, read, err
		}
		records, read = records+1, read+head+int64(n)
	}
}

// Append writes records through a buffer.
func (l *Log) Append(records [][]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range records {
		if len(r) == 0 || len(r) > MaxRecord {
			continue // unreachable: records are bounded where they are made
		}
		if err := l.append(r); err != nil {
			l.fail(err)
			return
		}
		l.failed = false
	}
}

func (l *Log) append(r []byte) error {
	if l.file == nil {
		if err := os.MkdirAll(l.dir, 0o700); err != nil { // somebody removed it, or there was no room for it
			return err
		}
		f, err := os.OpenFile(l.path(l.number), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			if errors.Is(err, os.ErrExist) { // of a directory that could not be read; the next record tries the next
				l.number++
			}
			return err
		}
		l.file, l.out, l.size = f, bufio.NewWriterSize(f, buffered), 0
	}
	var header [head]byte
	binary.BigEndian.PutUint32(header[:], uint32(len(r)))
	binary.BigEndian.PutUint32(header[4:], crc32.Checksum(r, l.table))
	for _, part := range [][]byte{header[:], r} {
		if _, err := l.out.Write(part); err != nil {
			return err
		}
	}
	l.size += head + int64(len(r))
	l.dirty = true
	if l.size < l.maxBytes/segments {
		return nil
	}
	err := l.finish()
	l.trim()
	return err
}

// fail gives the segment up that could not be written: a frame may be cut there, and nothing after it would be read.
func (l *Log) fail(err error) {
	l.errors++
	if !l.failed {
		l.log.Warn("cannot write traces; they are lost when the process ends", "dir", l.dir, "err", err)
	}
	l.failed = true
	if l.file != nil {
		l.out.Reset(io.Discard)
		_ = l.finish() // the same error
	}
	l.trim()
}

// finish closes the segment that is written.
func (l *Log) finish() error {
	if l.file == nil {
		return nil
	}
	err := errors.Join(l.out.Flush(), l.file.Sync(), l.file.Close())
	l.old = append(l.old, segment{l.number, l.size})
	l.number++
	l.file, l.out, l.dirty, l.size = nil, nil, false, 0
	return err
}

// trim removes the oldest segments until those that are left, and the next one, are within maxBytes.
func (l *Log) trim() {
	total := l.size + l.maxBytes/segments
	for _, s := range l.old {
		total += s.size
	}
	for len(l.old) > 0 && (total > l.maxBytes || len(l.old) > 4*segments) {
		oldest := l.old[0]
		if err := os.Remove(l.path(oldest.number)); err != nil && !errors.Is(err, os.ErrNotExist) {
			l.errors++
			l.log.Warn("cannot remove an old file of traces", "file", l.path(oldest.number), "err", err)
		}
		total -= oldest.size
		l.old = l.old[1:]
	}
}

// Sync brings everything to the disk.
func (l *Log) Sync() {
	l.mu.Lock()
	if !l.dirty {
		l.mu.Unlock()
		return
	}
	l.dirty = false
	file, err := l.file, l.out.Flush()
	if err != nil {
		l.fail(err)
	}
	l.mu.Unlock()
	if err != nil {
		return
	}
	// Without the lock: a slow disk makes nobody wait. The file may be full and closed by now; finish synced it then.
	if err := file.Sync(); err != nil && !errors.Is(err, os.ErrClosed) {
		l.mu.Lock()
		l.fail(err)
		l.mu.Unlock()
	}
}

// Run syncs now and then until ctx ends, and at the end.
func (l *Log) Run(ctx context.Context) {
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			l.mu.Lock()
			defer l.mu.Unlock()
			if err := l.finish(); err != nil {
				l.fail(err)
			}
			return
		case <-tick.C:
			l.Sync()
		}
	}
}

// Stats are figures for metrics.
type Stats struct {
	Bytes  int64
	Files  int
	Errors uint64
}

// Stats returns the figures of this moment.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Stats{Bytes: l.size, Files: len(l.old), Errors: l.errors}
	if l.file != nil {
		s.Files++
	}
	for _, o := range l.old {
		s.Bytes += o.size
	}
	return s
}
