package node

import (
	"maps"
	"slices"
	"strings"

	"bonsai/pkg/cluster/plan/componentflags"
)

// UserFlags returns the flags that the user chose for a component of the node: its own, and those with which the
// kubelet registers the node's labels and taints.
//
// Labels are sorted, so that the same configuration gives the same command line. The user's own flags come last: of two
// equal flags the later one wins.
func (n *Config) UserFlags(component string) []string {
	var args []string
	if component == "kubelet" {
		if len(n.Labels) > 0 {
			var labels []string
			for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
				labels = append(labels, key+"="+n.Labels[key])
			}
			args = append(args, "--node-labels="+strings.Join(labels, ","))
		}
		if len(n.Taints) > 0 {
			args = append(args, "--register-with-taints="+strings.Join(n.Taints, ","))
		}
	}
	return componentflags.Add(args, n.ComponentFlags[component])
}
