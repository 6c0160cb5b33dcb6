package logs

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// slowly is how lines was before it was made quick: the oracle.
func slowly(text, head string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(head + line)
	}
	return out.String()
}

// TestLines: whichever way a log arrives, its lines are what they are, each with its head.
func TestLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3*chunk+7)
	for _, text := range []string{"", "a", "a\n", "\n\n", "a\nb", "a\nbc\n\nd\n", long, long + "\n" + long,
		"a\n" + long + "\nb\n", strings.Repeat("some words\n", chunk/8)} {
		for _, head := range []string{"", "[pod/p/c] "} {
			for name, reader := range map[string]func(io.Reader) io.Reader{
				"at once": func(r io.Reader) io.Reader {
					return r
				}, "half": iotest.HalfReader, "with its end": iotest.DataErrReader,
			} {
				var out bytes.Buffer
				err := lines(&out, reader(strings.NewReader(text)), head)
				if want := slowly(text, head); err != nil || out.String() != want {
					t.Errorf("%s, %.20q of %d bytes, head %q: %v, %d bytes, want %d", name, text, len(text), head, err,
						out.Len(), len(want))
				}
			}
		}
	}
	broken := errors.New("broken")
	var out bytes.Buffer
	if err := lines(&out, io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)),
		"> "); !errors.Is(err, broken) || out.String() != "> a\n> b" {
		t.Errorf("a log that breaks off: %v, %q", err, out.String())
	}
}

// TestLinesAsTheyCome: a line is written before the next one is there, and many of them in one write.
func TestLinesAsTheyCome(t *testing.T) {
	t.Parallel()
	logR, logW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- lines(outW, logR, "") }()
	got := make([]byte, 100)
	for _, c := range []struct{ in, out string }{{"a\nbc\nd", "a\nbc\n"}, {"e\n", "de\n"}} {
		if _, err := logW.Write([]byte(c.in)); err != nil {
			t.Fatal(err)
		}
		if n, err := outR.Read(got); err != nil || string(got[:n]) != c.out {
			t.Fatalf("after %q came %q, %v", c.in, got[:n], err)
		}
	}
	logW.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// BenchmarkLines is the speed of lines of a hundred bytes.
func BenchmarkLines(b *testing.B) {
	text := bytes.Repeat([]byte(strings.Repeat("x", 99)+"\n"), 100_000)
	for _, head := range []string{"", "[pod/p/c] "} {
		b.Run("head="+head, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if err := lines(io.Discard, bytes.NewReader(text), head); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
