package cluster

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bonsai/pkg/cluster/node"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/tracestore"
	"bonsai/pkg/trace/export"
)

// TestSpans: every component sends all its spans to the store of the cluster, those of a node to the node's own socket;
// without a store none does.
func TestSpans(t *testing.T) {
	t.Parallel()
	for _, without := range []bool{false, true} {
		c := plan.Default("/data", "/bin")
		c.Nodes, c.NoTraces = plan.NodesUpTo(1), without
		l, of := c.Layout(), node.Of(c, c.Nodes[0])
		file := l.Node("n1", "etc", "tracing.yaml")
		want := map[string]string{"kube-apiserver": "--tracing-config-file=" + l.Tracing(),
			"kube-controller-manager": tracestore.Env + "=" + l.Tracing(),
			"kube-scheduler":          tracestore.Env + "=" + l.Tracing(), "kube-proxy": tracestore.Env + "=" + file}
		for _, p := range slices.Concat(everyProcess(c), of.Processes(slog.New(slog.DiscardHandler))) {
			said := slices.DeleteFunc(slices.Concat(p.Argv, p.Env), func(text string) bool {
				return !strings.Contains(text, "tracing-config-file") && !strings.HasPrefix(text, tracestore.Env)
			})
			if w := want[p.Name]; w == "" || without {
				if len(said) > 0 {
					t.Errorf("%s, without a store %t: %q", p.Name, without, said)
				}
			} else if !slices.Equal(said, []string{w}) {
				t.Errorf("%s: %q, want %q", p.Name, said, w)
			}
		}
		line := "tracing: {endpoint: \"unix://" + l.NodeSpansSocket("n1") + "\", samplingRatePerMillion: 1000000}\n"
		if strings.Contains(of.KubeletConfig(), line) == without {
			t.Errorf("without a store %t: the kubelet has\n%s", without, of.KubeletConfig())
		}
	}
	path := filepath.Join(t.TempDir(), "tracing.yaml")
	if err := os.WriteFile(path, tracestore.File("/data/run/otlp.sock"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := export.Read(path); err != nil || *got.Endpoint != "unix:///data/run/otlp.sock" ||
		*got.SamplingRatePerMillion != 1_000_000 {
		t.Errorf("%+v, %v", got, err)
	}
}
