package render

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bonsai/pkg/why"
)

var update = flag.Bool("update", false, "write the texts of testdata")

var now = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// chain is an answer that has all that an answer can have.
func chain() why.Answer {
	pod := why.Object{Kind: "Pod", Namespace: "shop", Name: "web"}
	three := now.Add(-3 * time.Minute)
	later := now.Add(time.Second)
	return why.Answer{
		Subject: pod,
		State:   "Pod shop/web has been Pending for 3 minutes.",
		Causes: []why.Cause{
			{
				Code: "InsufficientResource",
				Text: "No node has enough CPU left: the pod asks for 2, and n1 has 1.7 of 4 left, n2 has 500m of " +
					"2 left.",
				Evidence: []why.Evidence{
					{Object: pod, Field: `.status.conditions[?(@.type=="PodScheduled")].message`,
						Value: "0/2 nodes are available: 2 Insufficient cpu.", Time: &three},
					{Object: why.Object{Kind: "Node", Name: "n1"}, Field: ".status.allocatable.cpu", Value: "4",
						Time: &later},
				},
				Fixes: []why.Fix{
					{Text: "Ask for 300m less CPU.", Command: "kubectl -n shop set resources deployment/web " +
						"--requests=cpu=1700m"},
					{Text: "Add a node."},
				},
				Because: []why.Cause{{Code: "Reserved", Text: "Pod infra/db asks for 2 CPU on n1.",
					Evidence: []why.Evidence{{Object: why.Object{Kind: "Pod", Namespace: "infra", Name: "db"},
						Field: ".spec.containers[0].resources.requests.cpu", Value: "2"}},
					Because: []why.Cause{{Code: "X", Text: "It was made so."}}}},
			},
			{Code: "ObjectAbsent", Text: "ConfigMap settings does not exist.",
				Evidence: []why.Evidence{{Object: why.Object{Kind: "ConfigMap", Namespace: "shop", Name: "settings"}}}},
		},
		Unseen: []string{"You may not read nodes (all)."},
	}
}

// TestText compares texts with those of testdata: go test -run TestText -args -update writes them.
func TestText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer why.Answer
		style  Style
	}{
		"wide":   {chain(), Style{}},
		"narrow": {chain(), Style{Width: 50}},
		"colour": {chain(), Style{Width: 80, Colour: true}},
		"well": {why.Answer{State: "Pod web runs on n1.", Well: true,
			Causes: []why.Cause{{Text: "Node n1 has the highest score."}}}, Style{Width: 80}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.style.Now = now
			got := Text(c.answer, c.style)
			path := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestAllIsEscaped: no field of an answer reaches the terminal as it came.
func TestAllIsEscaped(t *testing.T) {
	t.Parallel()
	const evil = "a\x1b[2Jb"
	o := why.Object{Kind: evil, Namespace: evil, Name: evil}
	a := why.Answer{Subject: o, State: evil, Unseen: []string{evil}, Causes: []why.Cause{{Code: evil, Text: evil,
		Evidence: []why.Evidence{{Object: o, Field: evil, Value: evil}},
		Fixes:    []why.Fix{{Text: evil, Command: evil}, {Text: evil}}, Because: []why.Cause{{Text: evil}}}}}
	got := Text(a, Style{Width: 80, Escape: func(s string) string { return strings.ReplaceAll(s, "\x1b", "^[") }})
	if strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
	}
}

// TestDeepChainEnds: a chain from a file may be of any depth.
func TestDeepChainEnds(t *testing.T) {
	t.Parallel()
	c := why.Cause{Text: "end"}
	for range 10_000 {
		c = why.Cause{Text: "on", Because: []why.Cause{c}}
	}
	if got := strings.Count(Text(why.Answer{Causes: []why.Cause{c}}, Style{Width: 80}), "on"); got != maxDepth+1 {
		t.Errorf("%d causes are shown, want %d", got, maxDepth+1)
	}
}
