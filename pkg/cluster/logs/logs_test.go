package logs

import (
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/supervise"
)

// TestFind: a short name is enough where it is unique, and the error names the choices.
func TestFind(t *testing.T) {
	t.Parallel()
	logs := []processLog{{process: "bonsai"}, {process: "etcd"}, {process: "kube-apiserver"},
		{node: "n1", process: "containerd"}, {node: "n1", process: "kubelet"}, {node: "n2", process: "kubelet"},
		{process: "node-n1"}}
	for _, c := range []struct{ process, node, want, err string }{
		{"etcd", "", "etcd", ""}, {"n2-kubelet", "", "n2-kubelet", ""}, {"kubelet", "n1", "n1-kubelet", ""},
		{"containerd", "", "n1-containerd", ""},
		{"kubelet", "", "", "--node (n1-kubelet, n2-kubelet)"}, {"kubelet", "n3", "", `no log of "n3-kubelet"`},
		{"apiserver", "", "", `no log of "apiserver"`},
	} {
		log, err := find(logs, c.process, c.node)
		got := ""
		if err == nil {
			got = log.name()
		}
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s on %s: %q, %v", c.process, c.node, got, err)
		}
	}
}

// TestFindOnJoined: the node of a machine that has joined is named after its host, which may have any number of dashes
// and dots. A short name finds its logs, too.
func TestFindOnJoined(t *testing.T) {
	t.Parallel()
	for _, node := range []string{"web", "web-1", "node-1.example.com", "n1-rack-2"} {
		l := plan.Layout(t.TempDir())
		want := l.NodeLog(node, "kubelet")
		for _, path := range []string{want, l.NodeLog(node, "kube-proxy"), l.Log("node-" + node), l.Log("bonsai")} {
			if err := host.WriteFile(path, []byte("of "+path+"\n")); err != nil {
				t.Fatal(err)
			}
		}
		for _, asked := range []struct{ process, node string }{
			{"kubelet", ""}, {"kubelet", node}, {node + "-kubelet", ""},
		} {
			var out strings.Builder
			err := Print(t.Context(), l, asked.process, asked.node, supervise.LogOptions{Tail: -1}, &out)
			if err != nil || out.String() != "of "+want+"\n" {
				t.Errorf("%s on %q of the machine %s: %q, %v", asked.process, asked.node, node, out.String(), err)
			}
		}
	}
}

// TestNoLogs: without a cluster, an error says where there are no logs.
func TestNoLogs(t *testing.T) {
	t.Parallel()
	l := plan.Layout(t.TempDir())
	want := "there are no logs in " + string(l)
	if _, err := Names(l); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("names: %v", err)
	}
	err := Print(t.Context(), l, "kubelet", "", supervise.LogOptions{Tail: -1}, io.Discard)
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("print: %v", err)
	}
}

// TestNames: a log has the name of its process, with the node's before it.
func TestNames(t *testing.T) {
	t.Parallel()
	l := plan.Layout(filepath.Join(t.TempDir(), "[ci] *"))
	for _, path := range []string{l.Log("etcd"), l.NodeLog("n1", "kubelet"), l.NodeLog("n2", "kubelet")} {
		if err := host.WriteFile(path, nil); err != nil {
			t.Fatal(err)
		}
	}
	if names, err := Names(l); err != nil || !slices.Equal(names, []string{"etcd", "n1-kubelet", "n2-kubelet"}) {
		t.Errorf("the logs are %v, %v", names, err)
	}
}
