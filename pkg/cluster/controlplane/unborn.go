package controlplane

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"

	"bonsai/pkg/cluster/plan"
)

// firstLog is the name of the first file of etcd's write-ahead log (WAL).
const firstLog = "0000000000000000-0000000000000000.wal"

// RemoveUnborn removes the data of those etcds of the cluster that never came to store anything (removeUnborn), so that
// their next start is their first again. It must be called before they start.
func RemoveUnborn(c plan.Config) error {
	var errs []error
	for _, m := range c.Members() {
		errs = append(errs, removeUnborn(c.Layout().Etcd(m)))
	}
	return errors.Join(errs...)
}

// removeUnborn removes the data of an etcd that was killed in its first start, after it had made its write-ahead log
// and before it wrote the first entry, which makes it a member of the cluster. etcd takes such data for those of a
// member that has lost its cluster, and waits for a leader forever. Nothing is stored in them.
//
// It removes nothing unless it has read the whole log and found the metadata of a member and neither an entry nor a
// state of Raft, and unless etcd has never made a snapshot: a log that a power failure emptied is beside a database
// that can still be saved. dir is etcd's data directory; etcd must not run.
func removeUnborn(dir string) error {
	logs, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	if err != nil || len(logs) != 1 || filepath.Base(logs[0]) != firstLog {
		return err
	}
	snapshots, err := filepath.Glob(filepath.Join(dir, "member", "snap", "*.snap"))
	if err != nil || len(snapshots) != 0 {
		return err
	}
	f, err := os.Open(logs[0])
	if err != nil {
		return err
	}
	defer f.Close()
	if !isUnborn(f) {
		return nil
	}
	return os.RemoveAll(filepath.Join(dir, "member"))
}

// isUnborn reports whether a write-ahead log has the records of a new one, metadata among them, and no others. Each
// record follows its length, 8 bytes little-endian, whose highest byte has the number of bytes of padding; a length of
// 0 ends the log, which is allocated in advance. A record is a protobuf message that begins with its type as field 1.
// Records of other types (entry 2, state 3) and everything that cannot be read count as data.
func isUnborn(log io.Reader) bool {
	const metadata, crc, snapshot = 1, 4, 5
	const most = 4 << 10 // bytes of a record; those of a new log have some 30
	member := false      // the metadata was read
	for {
		var head [8]byte
		if _, err := io.ReadFull(log, head[:]); err != nil {
			return member && errors.Is(err, io.EOF)
		}
		frame := binary.LittleEndian.Uint64(head[:])
		if frame == 0 {
			return member
		}
		length := frame & (1<<56 - 1)
		if frame>>63 == 1 {
			length += frame >> 56 & 7 // the padding
		}
		if length < 2 || length > most {
			return false
		}
		record := make([]byte, length)
		if _, err := io.ReadFull(log, record); err != nil {
			return false
		}
		const typeField = 1<<3 | 0 // field 1, a varint
		if kind := record[1]; record[0] != typeField || kind != metadata && kind != crc && kind != snapshot {
			return false
		}
		member = member || record[1] == metadata
	}
}
