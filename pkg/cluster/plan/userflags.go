package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Components are the programs that may be given flags of the user's.
var Components = [...]string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet",
	"kube-proxy"}

// userFlags are the flags that the user wishes for a component. They come after ours: the last of two holds.
func UserFlags(flags map[string]string) []string {
	var args []string
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		args = append(args, "--"+name+"="+flags[name])
	}
	return args
}

// gatesFlag passes the feature gates to a component; the kubelet has them in its file (gatesField).
func GatesFlag(component string, gates map[string]bool) []string {
	if len(gates) == 0 || component == "etcd" {
		return nil
	}
	return []string{"--feature-gates=" + joinGates(gates, "=", ",")}
}

// gatesField is the kubelet's configuration of the feature gates.
func GatesField(gates map[string]bool) string {
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
