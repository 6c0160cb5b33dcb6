package supervise

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// TestLogOptions: the newest lines, in all forms in which components write the time; a line without one belongs to
// the one before.
func TestLogOptions(t *testing.T) {
	t.Parallel()
	const old = `panic: before any time
time=2026-11-22T20:11:10.500Z level=INFO msg=a
	of a
{"level":"warn","ts":"2026-11-22T20:11:11.183574Z","msg":"b"}
	of b
time="2026-11-22T21:11:12.858840888+01:00" level=info msg=c`
	// klog's lines have the local time, and no year.
	klog := time.Date(2026, 11, 22, 20, 11, 13, 500e6, time.UTC).Local().Format("0102 15:04:05.000000")
	log := old + "\nW" + klog + "     123 file.go:7] \"d\" k=\"v\"\n" +
		`{"ts":1795378274500.25,"caller":"a/file.go:7","msg":"e","v":0}` + "\nno end"
	at := func(s string) time.Time {
		parsed, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	lines := strings.SplitAfter(log, "\n")
	for name, c := range map[string]struct {
		o    LogOptions
		from int
	}{
		"all":                 {LogOptions{Tail: -1}, 0},
		"tail":                {LogOptions{Tail: 3}, 6},
		"none":                {LogOptions{Tail: 0}, 9},
		"more than there are": {LogOptions{Tail: 100}, 0},
		"since":               {LogOptions{Tail: -1, Since: at("2026-11-22T20:11:11Z")}, 3},
		"since, another zone": {LogOptions{Tail: -1, Since: at("2026-11-22T20:11:12Z")}, 5},
		"since, klog":         {LogOptions{Tail: -1, Since: at("2026-11-22T20:11:13Z")}, 6},
		"since, JSON":         {LogOptions{Tail: -1, Since: at("2026-11-22T20:11:14Z")}, 7},
		"since the future":    {LogOptions{Tail: -1, Since: at("2026-11-22T20:12:00Z")}, 9},
		"both":                {LogOptions{Tail: 1, Since: at("2026-11-22T20:11:11Z")}, 8},
	} {
		var out strings.Builder
		if err := c.o.print(strings.NewReader(log), &out); err != nil ||
			out.String() != strings.Join(lines[c.from:], "") {
			t.Errorf("%s: %v\n%s", name, err, &out)
		}
	}
}

// TestFollowLog: who follows a log sees every line of it once, over the change from one file to the next.
func TestFollowLog(t *testing.T) {
	t.Parallel()
	l, _ := smallLog(t)
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- ReadLog(ctx, l.path, LogOptions{Tail: -1, Follow: true}, w) }()
	lines := bufio.NewScanner(r)
	for i := range 300 {
		want := fmt.Sprintf("line %d of some length, so that the file is soon full", i)
		fmt.Fprintln(l, want)
		if i%10 != 9 { // ten at a time: less than a file
			continue
		}
		for k := i - 9; k <= i; k++ {
			if !lines.Scan() || !strings.HasPrefix(lines.Text(), fmt.Sprintf("line %d ", k)) {
				t.Fatalf("%q instead of line %d", lines.Text(), k)
			}
		}
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("it ended by itself")
	}
}

// TestLineTime: a time without a year is of the one in which it is nearest to the time that is asked for.
func TestLineTime(t *testing.T) {
	t.Parallel()
	local := func(year int, month time.Month, day int) time.Time {
		return time.Date(year, month, day, 12, 0, 0, 0, time.Local)
	}
	for stamp, c := range map[string]struct{ near, want time.Time }{
		"0101": {local(2026, 12, 31), local(2027, 1, 1)},
		"1231": {local(2027, 1, 1), local(2026, 12, 31)},
		"0229": {local(2027, 3, 1), local(2028, 2, 29)},
		"0615": {local(2026, 6, 1), local(2026, 6, 15)},
	} {
		line := "E" + stamp + " 12:00:00.000000       1 f.go:1] x"
		if got, ok := lineTime([]byte(line), c.near); !ok || !got.Equal(c.want) {
			t.Errorf("%s near %v: %v, %t", stamp, c.near, got, ok)
		}
	}
	if at, ok := lineTime([]byte("E1345 12:00:00.000000       1 f.go:1] x"), time.Now()); ok {
		t.Error(at)
	}
}

// TestSeverity: the lines of components that tell of errors and warnings, in both formats.
func TestSeverity(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]byte{
		`E1122 20:11:13.500000     123 f.go:7] "m"`:                             'E',
		`W1122 20:11:13.500000     123 f.go:7] "m"`:                             'W',
		`I1122 20:11:13.500000     123 f.go:7] "E1122 of another"`:              0,
		`{"ts":1795378274500.25,"caller":"a/f.go:7","msg":"m","v":0}`:           0,
		`{"ts":1795378274500.25,"caller":"a/f.go:7","msg":"m","err":",\"v\":"}`: 'E',
		`Every line that begins with an E is none`:                              0,
	} {
		if got := severityOf([]byte(line)); got != want {
			t.Errorf("%s: %q", line, got)
		}
	}
}
