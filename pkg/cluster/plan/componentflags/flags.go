// Package componentflags makes the flags that a cluster's user gives to components: flags of their own, and feature
// gates.
package componentflags

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Components are the programs that a user may give flags.
var Components = [...]string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet",
	"kube-proxy", "bonsai-traces"}

// Add adds a user's flags for a component to ours, in the order of their names. They come after ours, because the last
// of two wins. Ours that no component takes beside a flag of the user's give way.
func Add(ours []string, flags map[string]string) []string {
	args := slices.DeleteFunc(slices.Clone(ours), func(arg string) bool {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		return strings.HasPrefix(arg, "--") && slices.Contains(excluded(flags), name)
	})
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		args = append(args, "--"+name+"="+flags[name])
	}
	return args
}

// excluded returns the names of flags that a component refuses beside these.
func excluded(flags map[string]string) []string {
	var names []string
	if _, given := flags["authorization-config"]; given {
		names = append(names, "authorization-mode")
	}
	if _, given := flags["service-account-signing-endpoint"]; given {
		names = append(names, "service-account-signing-key-file", "service-account-key-file")
	}
	return names
}

// Gates returns the flag that passes the feature gates to a component, none if there are no gates. The kubelet has them
// in its file (GatesField), and etcd has no gates of Kubernetes.
func Gates(component string, gates map[string]bool) []string {
	if len(gates) == 0 || component == "etcd" {
		return nil
	}
	return []string{"--feature-gates=" + joinGates(gates, "=", ",")}
}

// GatesField returns the line of the kubelet's configuration file that sets the feature gates, "" without any.
func GatesField(gates map[string]bool) string {
	if len(gates) == 0 {
		return ""
	}
	return "featureGates: {" + joinGates(gates, ": ", ", ") + "}\n"
}

// joinGates writes the gates in the order of their names.
func joinGates(gates map[string]bool, equals, comma string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		all = append(all, fmt.Sprint(name, equals, gates[name]))
	}
	return strings.Join(all, comma)
}
