package supervise

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// smallLog returns a log of small files in a directory, and that directory.
func smallLog(t *testing.T) (*LogFile, string) {
	t.Helper()
	dir := t.TempDir()
	l, err := OpenLog(filepath.Join(dir, "p.log"))
	if err != nil {
		t.Fatal(err)
	}
	l.limit = 1000
	t.Cleanup(func() { l.Close() })
	return l, dir
}

// TestLogIsBounded: whatever is written, there are so many files of such a size, cut between lines, that hold the
// newest lines.
func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	l, dir := smallLog(t)
	const lines = 1000
	for i := range lines {
		fmt.Fprintf(l, "line %d\n", i)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1+oldLogs {
		t.Fatalf("%v, %v", files, err)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || info.Size() > 1100 {
			t.Errorf("%s has %d bytes, %v", f, info.Size(), err)
		}
	}
	var out strings.Builder
	if err := ReadLog(t.Context(), l.path, LogOptions{Tail: -1}, &out); err != nil {
		t.Fatal(err)
	}
	printed := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, line := range printed {
		if want := fmt.Sprintf("line %d", lines-len(printed)+i); line != want {
			t.Fatalf("%q instead of %q", line, want)
		}
	}
	if len(printed) < 200 {
		t.Errorf("only %d lines are kept", len(printed))
	}
	for range 100 { // no end of line in sight
		fmt.Fprint(l, strings.Repeat("x", 500))
	}
	if info, err := os.Stat(l.path); err != nil || info.Size() > 1000+lastWords+500 {
		t.Errorf("a line without an end: %d bytes, %v", info.Size(), err)
	}
}

// shortWriter takes space bytes more.
type shortWriter struct {
	to    io.Writer
	space int
}

func (w *shortWriter) Write(p []byte) (int, error) {
	n := min(len(p), w.space)
	w.space -= n
	if n, err := w.to.Write(p[:n]); err != nil || n == len(p) {
		return n, err
	}
	return n, syscall.ENOSPC
}

// TestLogOnAFullDisk: what a full disk does not take is lost, and said; the log goes on with lines of their own.
func TestLogOnAFullDisk(t *testing.T) {
	t.Parallel()
	l, _ := smallLog(t)
	disk := &shortWriter{to: l.to.To, space: 9}
	l.to.To = disk
	for i := range 3 {
		if n, err := fmt.Fprintf(l, "line %d\n", i); n != 7 || err != nil {
			t.Errorf("a full disk stops the process: %d, %v", n, err)
		}
	}
	disk.space = 1 << 20
	fmt.Fprint(l, "line 3\n")
	want := "line 0\nli\n(2 lines are lost: the disk did not take them)\nline 3\n"
	if text, err := os.ReadFile(l.path); err != nil || string(text) != want || l.size != int64(len(want)) {
		t.Errorf("%q of %d bytes, %v", text, l.size, err)
	}
	if words := l.words(); !strings.HasSuffix(words, "line 1\nline 2\nline 3") {
		t.Errorf("last words %q", words)
	}
	fmt.Fprint(l, "cut")
	next, err := OpenLog(l.path)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	fmt.Fprint(next, "line 4\n")
	if text, err := os.ReadFile(l.path); err != nil || string(text) != want+"cut\nline 4\n" {
		t.Errorf("after the writer was killed: %q, %v", text, err)
	}
}

// TestProcessLogIsBounded: a process that writes without end fills no disk, and its last words are remembered.
func TestProcessLogIsBounded(t *testing.T) {
	t.Parallel()
	const much = (oldLogs + 3) * maxLogSize
	s, log, _ := keepScript(t, fmt.Sprintf("yes 0123456789 | head -c %d; echo; echo the last words >&2; exit 1", much))
	status := waitStatus(t, s, func(p ProcessStatus) bool { return p.Restarts >= 1 })
	if !strings.HasSuffix(status.LastWords, "the last words") || len(status.LastWords) > lastWords {
		t.Errorf("last words %q", status.LastWords)
	}
	files, err := filepath.Glob(log + "*")
	if err != nil {
		t.Fatal(err)
	}
	var size int64
	for _, f := range files {
		if info, err := os.Stat(f); err == nil {
			size += info.Size()
		}
	}
	if most := int64((1+oldLogs)*maxLogSize + 1<<20); size > most {
		t.Errorf("%d bytes of logs, more than %d", size, most)
	}
}
