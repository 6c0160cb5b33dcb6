// Package persist keeps records over restarts, in files that only grow: segments.
//
// A segment is a sequence of frames: the length of a record (4 bytes), its CRC-32C (4 bytes), the record. Segments are
// numbered. When one is full the next begins, and the oldest are removed. Nothing is changed in place, so that a loss
// of power can only cost the end of the last segment: what cannot be read there is left out, and the process begins a
// new segment.
//
// # What is promised
//
// Append takes records into memory, and nobody waits for a disk. One goroutine writes them in the order in which Append
// took them, so what comes back is in that order. Every syncEvery all of them are brought to the disk. So a crash of
// the process, or a loss of power, costs what came since: the newest records, and never some from the middle. A process
// that ends in order loses nothing.
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
	// nodesShare is the part of these bytes that the records of all nodes may have together. Beyond it those of the
	// node with the most are not written.
	nodesShare = 2
	// buffered is how many bytes wait before the writer is woken, maxWaiting how many may wait at all: beyond it, the
	// disk is too slow, and records are not written.
	buffered   = 64 << 10
	maxWaiting = 8 << 20
	// syncEvery is how often what was taken is brought to the disk. etcd often has the same disk, and each sync makes
	// it wait.
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
	// some has room for one: a buffer full of records waits.
	some chan struct{}

	mu           sync.Mutex // nothing waits for the disk under it
	waiting      []frame
	waitingBytes int64
	// nodes is how many bytes each node has in what waits and in the files, nodeBytes how many all have.
	nodes     map[string]int64
	nodeBytes int64
	stats     Stats

	disk   sync.Mutex // is taken before mu; whoever has it writes
	old    []segment  // full ones, the oldest first
	number uint64     // of the segment that is written
	file   *os.File   // nil: it begins with the next record
	out    *bufio.Writer
	size   int64
	of     map[string]int64 // nodes' bytes of size
	dirty  bool
	failed bool // the last write did; it is logged once
}

// frame is a record that waits, and the node that sent it, "" for the control plane.
type frame struct {
	node   string
	record []byte
}

func (f frame) size() int64 { return head + int64(len(f.record)) }

// segment is a file that is not written any more, with the bytes that each node has in it.
type segment struct {
	number uint64
	size   int64
	of     map[string]int64
}

// Open reads which segments there are, in a directory that is made if it is missing, and bounds them to maxBytes.
//
// It cannot fail: a process that did not start for want of a disk would take its API away, and with it the deletion of
// namespaces. The log says what is wrong with the directory, which counts as an error of the disk.
func Open(dir string, maxBytes int64, log *slog.Logger) *Log {
	l := &Log{dir: dir, maxBytes: maxBytes, log: log, table: crc32.MakeTable(crc32.Castagnoli),
		some: make(chan struct{}, 1), nodes: map[string]int64{}}
	l.disk.Lock()
	defer l.disk.Unlock()
	err := os.MkdirAll(dir, 0o700)
	entries, unread := os.ReadDir(dir)
	if err = errors.Join(err, unread); err != nil {
		l.count(func(s *Stats) { s.Errors++ })
		log.Error("the traces of the last process cannot be read", "dir", dir, "err", err)
	}
	for _, e := range entries {
		number, ok := numberOf(e.Name())
		info, err := e.Info()
		if !ok || err != nil || !info.Mode().IsRegular() {
			continue
		}
		l.old = append(l.old, segment{number: number, size: info.Size(), of: map[string]int64{}})
		l.number = max(l.number, number+1)
	}
	slices.SortFunc(l.old, func(a, b segment) int {
		if a.number < b.number {
			return -1
		}
		return 1
	})
	l.trim()
	l.show()
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

// Replay hands all records to take, in the order in which they were written. take says which node sent a record. The
// bytes are valid until take returns. What is broken is logged and left out, with all that follows it in the same
// segment.
func (l *Log) Replay(take func(record []byte) (node string, err error)) {
	l.disk.Lock()
	defer l.disk.Unlock()
	buf := make([]byte, 0, 4<<10)
	for _, s := range l.old {
		records, read, err := l.replay(s, &buf, take)
		if err != nil {
			l.log.Warn("the rest of a file of traces cannot be read and is left out", "file", l.path(s.number), "records",
				records, "bytes", read, "of", s.size, "err", err)
		}
	}
}

func (l *Log) replay(s segment, buf *[]byte, take func([]byte) (string, error)) (records int, read int64, err error) {
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
		node, err := take(record)
		if err != nil {
			return records, read, err
		}
		if node != "" {
			s.of[node] += head + int64(n)
			l.account(map[string]int64{node: head + int64(n)}, 1)
		}
		records, read = records+1, read+head+int64(n)
	}
}

// Append takes records that a node sent, "" for the control plane. It does not wait: the records, which nobody may
// change any more, are written later. Those for which there is no room are not, and are counted.
func (l *Log) Append(node string, records [][]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range records {
		f := frame{node, r}
		if len(r) == 0 || len(r) > MaxRecord || l.waitingBytes+f.size() > maxWaiting || !l.hasRoom(f) {
			l.stats.Left++
			continue
		}
		l.waiting, l.waitingBytes = append(l.waiting, f), l.waitingBytes+f.size()
		if node != "" {
			l.nodes[node] += f.size()
			l.nodeBytes += f.size()
		}
	}
	if l.waitingBytes >= buffered {
		select {
		case l.some <- struct{}{}:
		default:
		}
	}
}

// hasRoom reports whether the files may have one more record of its sender. The oldest files go, whoever sent what is
// in them: so a node must not fill them with its own.
func (l *Log) hasRoom(f frame) bool {
	if f.node == "" || l.nodeBytes+f.size() <= l.maxBytes/nodesShare {
		return true
	}
	for _, bytes := range l.nodes {
		if bytes > l.nodes[f.node] {
			return true
		}
	}
	return false
}

// account adds the bytes of nodes to what they have, or with -1 takes them off.
func (l *Log) account(of map[string]int64, sign int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for node, bytes := range of {
		l.nodes[node] += sign * bytes
		l.nodeBytes += sign * bytes
		if l.nodes[node] <= 0 {
			delete(l.nodes, node)
		}
	}
}

// count changes the figures.
func (l *Log) count(change func(*Stats)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.stats)
}

// write writes what waits. The caller has disk, and so has all that follows.
func (l *Log) write() {
	l.mu.Lock()
	batch := l.waiting
	l.waiting, l.waitingBytes = nil, 0
	l.mu.Unlock()
	if len(batch) == 0 {
		return
	}
	for i, f := range batch {
		if err := l.append(f); err != nil {
			l.fail(err)
			for _, lost := range batch[i:] {
				if lost.node != "" {
					l.account(map[string]int64{lost.node: lost.size()}, -1)
				}
			}
			return
		}
	}
	if l.file != nil {
		if err := l.out.Flush(); err != nil {
			l.fail(err)
			return
		}
	}
	l.failed = false
	l.show()
}

func (l *Log) append(f frame) error {
	if err := l.begin(); err != nil {
		return err
	}
	var header [head]byte
	binary.BigEndian.PutUint32(header[:], uint32(len(f.record)))
	binary.BigEndian.PutUint32(header[4:], crc32.Checksum(f.record, l.table))
	for _, part := range [][]byte{header[:], f.record} {
		if _, err := l.out.Write(part); err != nil {
			return err
		}
	}
	l.size += f.size()
	if f.node != "" {
		l.of[f.node] += f.size()
	}
	l.dirty = true
	if l.size < l.maxBytes/segments {
		return nil
	}
	err := l.finish()
	l.trim()
	return err
}

// begin opens the next segment, unless one is open.
func (l *Log) begin() error {
	if l.file != nil {
		return nil
	}
	if err := os.MkdirAll(l.dir, 0o700); err != nil { // somebody removed it, or there was no room for it
		return err
	}
	for {
		f, err := os.OpenFile(l.path(l.number), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, os.ErrExist) { // of a directory that could not be read
			l.number++
			continue
		}
		if err == nil {
			l.file, l.out, l.size, l.of = f, bufio.NewWriterSize(f, buffered), 0, map[string]int64{}
		}
		return err
	}
}

// fail gives the segment up that could not be written: a frame may be cut there, and nothing after it would be read.
func (l *Log) fail(err error) {
	l.count(func(s *Stats) { s.Errors++ })
	if !l.failed {
		l.log.Warn("cannot write traces; they are lost when the process ends", "dir", l.dir, "err", err)
	}
	l.failed = true
	if l.file != nil {
		l.out.Reset(io.Discard)
		_ = l.finish() // the same error
	}
	l.trim()
	l.show()
}

// finish closes the segment that is written.
func (l *Log) finish() error {
	if l.file == nil {
		return nil
	}
	err := errors.Join(l.out.Flush(), l.file.Sync(), l.file.Close())
	l.old = append(l.old, segment{l.number, l.size, l.of})
	l.number++
	l.file, l.out, l.dirty, l.size, l.of = nil, nil, false, 0, nil
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
			l.count(func(s *Stats) { s.Errors++ })
			l.log.Warn("cannot remove an old file of traces", "file", l.path(oldest.number), "err", err)
		}
		l.account(oldest.of, -1)
		total -= oldest.size
		l.old = l.old[1:]
	}
}

// show makes the files' figures those of this moment.
func (l *Log) show() {
	bytes, files := l.size, len(l.old)
	if l.file != nil {
		files++
	}
	for _, o := range l.old {
		bytes += o.size
	}
	l.count(func(s *Stats) { s.Bytes, s.Files = bytes, files })
}

// Sync writes what waits and brings everything to the disk.
func (l *Log) Sync() {
	l.disk.Lock()
	defer l.disk.Unlock()
	l.write()
	if !l.dirty {
		return
	}
	l.dirty = false
	if err := l.file.Sync(); err != nil {
		l.fail(err)
	}
}

// Run writes until ctx ends, and then what still waits.
func (l *Log) Run(ctx context.Context) {
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			l.close()
			return
		case <-l.some:
			l.disk.Lock()
			l.write()
			l.disk.Unlock()
		case <-tick.C:
			l.Sync()
		}
	}
}

// close writes what waits and closes the segment.
func (l *Log) close() {
	l.disk.Lock()
	defer l.disk.Unlock()
	l.write()
	if err := l.finish(); err != nil {
		l.fail(err)
	}
	l.show()
}

// Stats are figures for metrics.
type Stats struct {
	// Bytes and Files are those in the directory.
	Bytes int64
	Files int
	// Errors counts writes that failed, Left the records that were not written because the disk was too slow, or their
	// sender had too much in the files.
	Errors, Left uint64
}

// Stats returns the figures of this moment.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stats
}
