package cluster

import (
	"strings"
	"testing"
	"time"
)

func TestFindLog(t *testing.T) {
	t.Parallel()
	names := []string{"bonsai", "etcd", "kube-apiserver", "n1-containerd", "n1-kubelet", "n2-kubelet", "node-n1"}
	for _, c := range []struct{ process, node, want, err string }{
		{"etcd", "", "etcd", ""}, {"n2-kubelet", "", "n2-kubelet", ""}, {"kubelet", "n1", "n1-kubelet", ""}, {"containerd", "", "n1-containerd", ""},
		{"kubelet", "", "", "--node (n1-kubelet, n2-kubelet)"}, {"kubelet", "n3", "", `no log of "n3-kubelet"`}, {"apiserver", "", "", `no log of "apiserver"`},
	} {
		got, err := findLog(names, c.process, c.node)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s on %s: %q, %v", c.process, c.node, got, err)
		}
	}
}

// TestLogOptions: the newest lines, in all forms in which components write the time; a line without one belongs to the one before.
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
		if err := c.o.print(strings.NewReader(log), &out); err != nil || out.String() != strings.Join(lines[c.from:], "") {
			t.Errorf("%s: %v\n%s", name, err, &out)
		}
	}
}
