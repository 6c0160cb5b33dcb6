package node

import (
	"os"
	"slices"
	"strings"

	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/supervise"
)

// basisOf returns everything that a process reads only at its start: its flags, and the content of its configuration
// and of the cluster's authority, which kubeconfigs have too. Labels and taints are not in it: a kubelet sets them when
// it registers its Node, and those of a registered Node are the administrator's.
func (n *Config) basisOf(p supervise.Process) string {
	l := plan.Layout(n.DataDir)
	files := map[string][]string{
		"containerd":     {l.Node(n.Name, "etc", "containerd.toml")},
		"kubelet":        {l.Node(n.Name, "etc", "kubelet.yaml"), l.PKI("ca.crt")},
		"kube-proxy":     {l.PKI("ca.crt")},
		"bonsai-network": {l.PKI("ca.crt")},
		"bonsai-traces":  {l.PKI("ca.crt")},
	}
	parts := slices.DeleteFunc(slices.Clone(p.Argv), func(arg string) bool {
		return strings.HasPrefix(arg, "--node-labels=") || strings.HasPrefix(arg, "--register-with-taints=")
	})
	for _, path := range files[p.Name] {
		data, err := os.ReadFile(path)
		if err != nil {
			data = []byte(err.Error()) // the process will say what it lacks
		}
		parts = append(parts, string(data))
	}
	return strings.Join(parts, "\x00")
}
