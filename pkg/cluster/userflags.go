package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Components are the programs that may be given flags of the user's.
var Components = [...]string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"}

// userFlags are the flags that the user wishes for a component. They come after ours: the last of two holds.
func userFlags(flags map[string]string) []string {
	var args []string
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		args = append(args, "--"+name+"="+flags[name])
	}
	return args
}

// gatesFlag passes the feature gates to a component; the kubelet has them in its file (gatesField).
func gatesFlag(component string, gates map[string]bool) []string {
	if len(gates) == 0 || component == "etcd" {
		return nil
	}
	return []string{"--feature-gates=" + joinGates(gates, "=", ",")}
}

// gatesField is the kubelet's configuration of the feature gates.
func gatesField(gates map[string]bool) string {
	if len(gates) == 0 {
		return ""
	}
	return "featureGates: {" + joinGates(gates, ": ", ", ") + "}\n"
}

func joinGates(gates map[string]bool, equals, comma string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		all = append(all, fmt.Sprint(name, equals, gates[name]))
	}
	return strings.Join(all, comma)
}

// userFlags are what the user wishes of a component of the node: its flags, and how the kubelet registers the node.
func (n *NodeConfig) userFlags(component string) []string {
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
	return append(args, userFlags(n.ComponentFlags[component])...)
}
