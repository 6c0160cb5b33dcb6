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
	const log = `panic: before any time
time=2026-11-22T20:11:10.500Z level=INFO msg=a
	of a
{"level":"warn","ts":"2026-11-22T20:11:11.183574Z","msg":"b"}
	of b
time="2026-11-22T21:11:12.858840888+01:00" level=info msg=c
no end`
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
		"tail":                {LogOptions{Tail: 3}, 4},
		"none":                {LogOptions{Tail: 0}, 7},
		"more than there are": {LogOptions{Tail: 100}, 0},
		"since":               {LogOptions{Tail: -1, Since: at("2026-11-22T20:11:11Z")}, 3},
		"since, another zone": {LogOptions{Tail: -1, Since: at("2026-11-22T20:11:12Z")}, 5},
		"since the future":    {LogOptions{Tail: -1, Since: at("2026-11-22T20:12:00Z")}, 7},
		"both":                {LogOptions{Tail: 1, Since: at("2026-11-22T20:11:11Z")}, 6},
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
