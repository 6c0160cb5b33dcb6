package cluster

import (
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bonsai/pkg/cluster/controlplane"
	"bonsai/pkg/cluster/node"
	"bonsai/pkg/cluster/pki"
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
}

// TestSpansOfJoinedMachines: the components of a machine that joined send to sockets of that machine, from which one
// process of the node sends on as the node, and with a control plane one of the machine as bonsai-traces. A cluster
// without traces has none of them.
func TestSpansOfJoinedMachines(t *testing.T) {
	t.Parallel()
	for _, withControlPlane := range []bool{false, true} {
		for _, without := range []bool{false, true} {
			c := plan.Default("/data", "/bin")
			c.Nodes, c.NoTraces = []plan.Node{{Number: 1, Hostname: "far"}}, without
			c.Joined = &plan.Joined{Server: netip.MustParseAddrPort("192.0.2.1:6443"),
				Address: netip.MustParseAddr("192.0.2.2"), ControlPlane: withControlPlane}
			l, of := c.Layout(), node.Of(c, c.Nodes[0])
			var forwarders []string
			sending := 0
			processes := slices.Concat(everyProcess(c), of.Processes(slog.New(slog.DiscardHandler)))
			if controlplane.HasTraces(c) {
				processes = append(processes, controlplane.Traces(c))
			}
			for _, p := range processes {
				text := strings.Join(slices.Concat(p.Argv, p.Env), " ")
				if p.Name == tracestore.Name {
					forwarders = append(forwarders, text)
				}
				if strings.Contains(text, "racing") {
					sending++
				}
			}
			want := []string{"/bin/bonsai-traces --forward-kubeconfig=" + l.Kubeconfig("kubelet-far") +
				" --otlp-socket=" + l.NodeSpansSocket("far") + " --secure-port=0"}
			senders := 1 // kube-proxy; the kubelet has its own file
			if withControlPlane {
				want = append(want, "/bin/bonsai-traces --forward-kubeconfig="+l.Kubeconfig(tracestore.Name)+
					" --otlp-socket="+l.SpansSocket()+" --secure-port=0")
				senders += 3
			}
			if without {
				want, senders = nil, 0
			}
			if !slices.Equal(forwarders, want) || sending != senders {
				t.Errorf("control plane %t, without traces %t: %q; %d send", withControlPlane, without, forwarders,
					sending)
			}
			if strings.Contains(of.KubeletConfig(), "tracing: {") == without {
				t.Errorf("without traces %t: the kubelet has\n%s", without, of.KubeletConfig())
			}
			has := slices.ContainsFunc(pki.Certificates(c), func(row pki.Certificate) bool {
				return row.Name == tracestore.Name
			})
			if has != (withControlPlane && !without) || c.HasAddon(tracestore.Addon) {
				t.Errorf("control plane %t: the certificate %t, the add-on %t", withControlPlane, has,
					c.HasAddon(tracestore.Addon))
			}
		}
	}
}

// TestTracingFile: what sends spans can read the file.
func TestTracingFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tracing.yaml")
	if err := os.WriteFile(path, tracestore.File("/data/run/otlp.sock"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := export.Read(path); err != nil || *got.Endpoint != "unix:///data/run/otlp.sock" ||
		*got.SamplingRatePerMillion != 1_000_000 {
		t.Errorf("%+v, %v", got, err)
	}
}
