package lines

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// disk takes so many bytes more.
type disk struct {
	bytes.Buffer
	space int
	mute  bool // a short write has no error
}

func (d *disk) Write(p []byte) (int, error) {
	n := min(len(p), d.space)
	d.space -= n
	d.Buffer.Write(p[:n])
	if n < len(p) && !d.mute {
		return n, syscall.ENOSPC
	}
	return n, nil
}

const plenty = 1 << 20

// TestFullDisk: wherever in a line the space ends, the log goes on with a line of its own once there is space, and says
// once how many lines it lacks.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for space := range 12 {
		for _, mute := range []bool{false, true} {
			d := &disk{space: space, mute: mute}
			w := &Writer{To: d, Notice: func(n int) []byte { return fmt.Appendf(nil, "(%d lost)\n", n) }}
			want := "(1 lost)\n"
			n, err := w.Write([]byte("aaa\nbbbb\n"))
			if n != min(space, 9) || (err == nil) != (space >= 9) {
				t.Errorf("space %d: wrote %d, %v", space, n, err)
			}
			if _, err := w.Write([]byte("cccc\n")); err == nil || mute != errors.Is(err, io.ErrShortWrite) {
				t.Errorf("space %d: a line into a full disk: %v", space, err)
			}
			switch {
			case space < 4:
				want = "(3 lost)\n"
			case space < 9:
				want = "(2 lost)\n"
			}
			written := "aaa\nbbbb\ncccc\n"[:space]
			if written != "" && !strings.HasSuffix(written, "\n") {
				written += "\n"
			}
			want = written + want + "dddd\neeee\n"
			d.space = plenty
			for _, line := range []string{"dddd\n", "eeee\n"} {
				if n, err := w.Write([]byte(line)); n != len(line) || err != nil {
					t.Errorf("space %d: with space again: %d, %v", space, n, err)
				}
			}
			if d.String() != want {
				t.Errorf("space %d, mute %t:\n got %q\nwant %q", space, mute, d.String(), want)
			}
		}
	}
}

// TestNoticeOnAFullDisk: a notice that is cut off is written again, and a full disk takes no second half line.
func TestNoticeOnAFullDisk(t *testing.T) {
	t.Parallel()
	d := &disk{}
	w := &Writer{To: d, Notice: func(n int) []byte { return fmt.Appendf(nil, "(%d lost)\n", n) }}
	for _, space := range []int{0, 3, 0, 1, 6} {
		d.space = space
		if _, err := w.Write([]byte("line\n")); err == nil {
			t.Errorf("space %d: written", space)
		}
	}
	d.space = plenty
	w.Recover()
	w.Recover()
	if got, want := d.String(), "(1 \n(4 los\n(5 lost)\n"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestChunks: what comes in pieces, as from a pipe, is not taken apart; after a lost piece the next one begins a line.
func TestChunks(t *testing.T) {
	t.Parallel()
	d := &disk{space: plenty}
	w := &Writer{To: d}
	for _, p := range []string{"a", "b\nc"} {
		if _, err := w.Write([]byte(p)); err != nil {
			t.Error(err)
		}
	}
	d.space = 0
	if _, err := w.Write([]byte("d\n")); err == nil {
		t.Error("written into a full disk")
	}
	d.space = plenty
	if _, err := w.Write([]byte("e\n")); err != nil || d.String() != "ab\nc\ne\n" {
		t.Errorf("%q, %v", d.String(), err)
	}
}

// TestResume: the half line of a writer that was killed does not run into the next.
func TestResume(t *testing.T) {
	t.Parallel()
	d := &disk{space: plenty}
	w := &Writer{To: d}
	w.Resume()
	if _, err := w.Write([]byte("a\n")); err != nil || d.String() != "\na\n" {
		t.Errorf("%q, %v", d.String(), err)
	}
}

// TestCut: only a file that ends within a line is cut.
func TestCut(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"": false, "\n": false, "a\n": false, "a\nb": true} {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if cut, err := Cut(path); cut != want || err != nil {
			t.Errorf("%q: %t, %v", text, cut, err)
		}
	}
	if cut, err := Cut(os.DevNull); cut || err != nil {
		t.Errorf("a device: %t, %v", cut, err)
	}
	if _, err := Cut(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a missing file has an end")
	}
}
