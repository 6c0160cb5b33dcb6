package persist

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens a log of dir, and returns it with the records in it and what it logged meanwhile.
func open(t *testing.T, dir string, maxBytes int64) (l *Log, records []string, logged *bytes.Buffer) {
	t.Helper()
	logged = &bytes.Buffer{}
	l = Open(dir, maxBytes, slog.New(slog.NewTextHandler(logged, nil)))
	l.Replay(func(r []byte) (string, error) { records = append(records, string(r)); return senderOf(r), nil })
	return l, records, logged
}

// senderOf returns the node before the colon of a test's record, if there is one.
func senderOf(r []byte) string {
	node, _, ok := strings.Cut(string(r), ":")
	if !ok {
		return ""
	}
	return node
}

// end stops a log as its process does.
func end(l *Log) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	l.Run(ctx)
}

// TestReplay: what was written comes back, over several processes, and the files stay within their bytes.
func TestReplay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "other"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const most = 16 << 10
	var wrote []string
	rnd := rand.New(rand.NewPCG(1, 2))
	for process := range 30 {
		l, got, logged := open(t, dir, most)
		if !slices.Equal(got, wrote[len(wrote)-len(got):]) || len(wrote) > 0 && len(got) == 0 || logged.Len() > 0 {
			t.Fatalf("process %d: of %d records there are %d, which are not the last: %s", process, len(wrote), len(got),
				logged)
		}
		for range rnd.IntN(60) {
			r := fmt.Sprint(len(wrote), strings.Repeat("x", rnd.IntN(200)))
			l.Append("", [][]byte{[]byte(r)})
			wrote = append(wrote, r)
			if rnd.IntN(10) == 0 {
				l.Sync()
			}
			if s := l.Stats(); s.Bytes > most || s.Errors > 0 {
				t.Fatalf("process %d: %+v", process, s)
			}
		}
		end(l)
		on := int64(0)
		names, err := filepath.Glob(filepath.Join(dir, "segment-*"))
		for _, name := range names {
			if info, err := os.Stat(name); err == nil {
				on += info.Size()
			}
		}
		if s := l.Stats(); err != nil || s.Bytes != on || s.Files != len(names) {
			t.Fatalf("process %d: %+v, but %d bytes in %v, %v", process, s, on, names, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "other")); err != nil {
		t.Error(err)
	}
}

// TestCutFiles: whatever a loss of power leaves of a file, at every byte, what is whole comes back, a new process
// writes on, and the next finds all.
func TestCutFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _, _ := open(t, dir, 1<<20)
	l.Append("", [][]byte{[]byte("first"), []byte("second"), []byte("third")})
	end(l)
	whole, err := os.ReadFile(l.path(0))
	if err != nil {
		t.Fatal(err)
	}
	ends := []int{13, 27, 40} // of the frames
	for n := range len(whole) + 1 {
		for name, content := range map[string][]byte{"cut": whole[:n],
			"zeroes": append(slices.Clone(whole[:n]), make([]byte, len(whole)-n+100)...),
			"turned": turned(whole, n)} {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(l.path(0))), content, 0o600); err != nil {
				t.Fatal(err)
			}
			want := 0
			for _, end := range ends {
				if n >= end {
					want++
				}
			}
			l, got, logged := open(t, dir, 1<<20)
			broken := name != "cut" && n < len(whole) || name == "zeroes" || !slices.Contains(append(ends, 0), n)
			if len(got) != want || broken != (logged.Len() > 0) {
				t.Errorf("%s at %d: %q, logged %q", name, n, got, logged)
			}
			l.Append("", [][]byte{[]byte("later")})
			end(l)
			if _, again, _ := open(t, dir, 1<<20); !slices.Equal(again, append(got, "later")) {
				t.Errorf("%s at %d, then: %q", name, n, again)
			}
		}
	}
}

// turned is whole with one bit turned, or whole after its end.
func turned(whole []byte, n int) []byte {
	out := slices.Clone(whole)
	if n < len(out) {
		out[n] ^= 1
	}
	return out
}

// TestDiskErrors: a disk that takes nothing makes nobody wait, and is logged once.
func TestDiskErrors(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a")
	l, _, logged := open(t, dir, 1<<20)
	file := func() error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)) }
	if err := file(); err != nil { // no directory can be made there
		t.Fatal(err)
	}
	for range 3 {
		l.Append("", [][]byte{[]byte("lost")})
		l.Sync()
	}
	if s := l.Stats(); s.Errors != 3 || strings.Count(logged.String(), "cannot write traces") != 1 {
		t.Errorf("%+v: %s", s, logged)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	l.Append("", [][]byte{[]byte("kept")})
	end(l)
	l, got, _ := open(t, dir, 1<<20)
	if !slices.Equal(got, []string{"kept"}) {
		t.Errorf("%q", got)
	}
	// Files that were not seen at the start are not overwritten.
	blind, _, _ := open(t, dir, 1<<20)
	blind.old, blind.number = nil, 0
	for range 3 {
		blind.Append("", [][]byte{[]byte("after")})
	}
	end(blind)
	l, got, _ = open(t, dir, 1<<20)
	if !slices.Equal(got, []string{"kept", "after", "after", "after"}) || blind.Stats().Errors != 0 {
		t.Errorf("%q", got)
	}
	end(l)
	if err := os.Remove(blind.path(1)); err != nil {
		t.Fatal(err)
	}
	l, _, _ = open(t, dir, 1<<20)
	// A record that is not one of ours is the end of its file.
	l.Append("", [][]byte{[]byte("more")})
	end(l)
	l, _, logged = open(t, dir, 1<<20)
	n := 0
	l.Replay(func([]byte) (string, error) { n++; return "", errors.New("no record") })
	if n != 2 || strings.Count(logged.String(), "no record") != 2 {
		t.Errorf("%d records: %s", n, logged)
	}
	if err := file(); err != nil {
		t.Fatal(err)
	}
	if l, got, logged := open(t, dir, 1<<20); len(got) > 0 || l.Stats().Errors != 1 ||
		!strings.Contains(logged.String(), "cannot be read") {
		t.Errorf("a file in place of the directory: %q, %+v, %s", got, l.Stats(), logged)
	}
}

// TestFlood: a node that sends without end does not drive the records of others out of the files, also not over
// restarts, and none of another node's is left out.
func TestFlood(t *testing.T) {
	t.Parallel()
	const most = 64 << 10
	dir, pad := t.TempDir(), strings.Repeat("x", 200)
	one := func(l *Log, node, text string) { l.Append(node, [][]byte{[]byte(node + ":" + text)}) }
	for process := range 3 {
		l, _, _ := open(t, dir, most)
		if process == 0 {
			l.Append("", [][]byte{[]byte("first")})
		}
		for i := range 1000 {
			one(l, "n2", fmt.Sprint(i, pad))
			if i%100 == 0 {
				left := l.Stats().Left
				one(l, "n1", fmt.Sprintf("%d-%d", process, i))
				if l.Stats().Left != left {
					t.Errorf("a record of another node is left out, at %d", i)
				}
				l.Sync()
			}
		}
		if s := l.Stats(); s.Left == 0 || s.Bytes > most*3/4 || s.Errors > 0 {
			t.Errorf("process %d: %+v", process, s)
		}
		end(l)
	}
	l, got, _ := open(t, dir, most)
	if !slices.Contains(got, "first") || !slices.Contains(got, "n1:0-900") || !slices.Contains(got, "n1:2-900") {
		t.Errorf("of %d records, those of others are not there", len(got))
	}
	// When the files with the flood are gone, the node may write again.
	for range 1000 {
		l.Append("", [][]byte{[]byte(pad)})
	}
	l.Sync()
	left := l.Stats().Left
	if one(l, "n2", "again"); l.Stats().Left != left {
		t.Error("a node that has nothing in the files cannot write")
	}
	end(l)
	if sum := l.nodeBytes; sum != head+int64(len("n2:again")) || len(l.nodes) != 1 {
		t.Errorf("nodes have %d bytes: %v", sum, l.nodes)
	}
}

// TestSlowDisk: nobody waits for the disk, and what waits for it is bounded.
func TestSlowDisk(t *testing.T) {
	t.Parallel()
	l, _, _ := open(t, t.TempDir(), 1<<20)
	l.disk.Lock() // a write that does not come back
	record := bytes.Repeat([]byte("x"), 1<<10)
	for range 2 * maxWaiting >> 10 {
		l.Append("", [][]byte{record})
	}
	if left := l.Stats().Left; left < maxWaiting>>10 || left > maxWaiting*11/10>>10 {
		t.Errorf("%d records are left out", left)
	}
	l.disk.Unlock()
	end(l)
}

// TestNames: files of others are not touched.
func TestNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"segment-000000000000000a.traces": true, "segment-00.traces": false,
		"segment-00000000000000zz.traces": false, "segment-ffffffffffffffff.traces": false,
		"segment-000000000000000A.traces": false, "x": false, "segment-0000000000000001.tmp": false} {
		if _, ok := numberOf(name); ok != want {
			t.Errorf("%s: %t", name, ok)
		}
	}
}
