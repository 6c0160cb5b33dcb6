package terminal

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"bonsai/api/traces"
	"bonsai/pkg/story"
	"bonsai/pkg/story/storytest"
	"bonsai/pkg/termtext"
)

// drawn is a story as text.
func drawn(t *testing.T, of *traces.Trace, o Options) string {
	t.Helper()
	var out bytes.Buffer
	if err := Story(&out, story.New(of, "traces.bonsai.io", 0), o); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestStory: the pictures are as recorded, and no line is wider than the terminal.
func TestStory(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		of *traces.Trace
		o  Options
	}{
		"pod.txt":       {storytest.Pod(), Options{Width: 100}},
		"narrow.txt":    {storytest.Pod(), Options{Width: 50}},
		"wide.txt":      {storytest.Pod(), Options{Width: 140, All: true}},
		"ascii.txt":     {storytest.Pod(), Options{Width: 80, ASCII: true}},
		"colour.txt":    {storytest.Pod(), Options{Width: 80, Color: true}},
		"failing.txt":   {storytest.Failing(), Options{Width: 80}},
		"hostile.txt":   {storytest.Hostile(), Options{Width: 80}},
		"no-spans.txt":  {&traces.Trace{Object: traces.Object{Kind: "Pod", Name: "x"}}, Options{Width: 80}},
		"too-small.txt": {storytest.Failing(), Options{Width: 3, All: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := drawn(t, test.of, test.o)
			storytest.Golden(t, name, strings.ReplaceAll(got, "\x1b", "␛"))
			if test.o.Color {
				return
			}
			for line := range strings.Lines(got) {
				if n := termtext.Columns(strings.TrimSuffix(line, "\n")); n > max(test.o.Width, minWidth) {
					t.Errorf("%d columns: %q", n, line)
				}
			}
		})
	}
}

// TestHostile: whatever the texts of others are, no control character reaches the terminal except newlines and our own
// colours.
func TestHostile(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{Width: 80}, {Width: 200, All: true}, {Width: 80, ASCII: true}} {
		got := drawn(t, storytest.Hostile(), o)
		for _, r := range got {
			if r != '\n' && (r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0x202e || o.ASCII && r > 0x7e) {
				t.Fatalf("%q reaches the terminal:\n%q", r, got)
			}
		}
	}
	colours := drawn(t, storytest.Hostile(), Options{Width: 80, Color: true, All: true})
	for i, part := range strings.Split(colours, "\x1b") {
		if i > 0 && !strings.HasPrefix(part, "[") || strings.ContainsAny(part, "\a\r\u009b\u202e") {
			t.Errorf("a sequence that is not ours: %q", part)
		}
	}
}

// TestMany: of thousands of steps a bounded number of lines is drawn, the longest among them.
func TestMany(t *testing.T) {
	t.Parallel()
	of := storytest.Failing()
	for i := range 4000 {
		of.Spans = append(of.Spans, traces.Span{TraceID: "t", ID: fmt.Sprint(i), Name: "kubelet.status",
			Component: "kubelet", Start: storytest.Zero().Add(time.Duration(i) * time.Millisecond),
			Duration: 500 * time.Microsecond})
	}
	got := drawn(t, of, Options{Width: 80, All: true})
	// the lines of the picture, those of the critical path, and headings
	if n := strings.Count(got, "\n"); n > 500 {
		t.Errorf("%d lines", n)
	}
	if !strings.Contains(got, " pull ") {
		t.Errorf("the longest step is not drawn:\n%s", got)
	}
}
