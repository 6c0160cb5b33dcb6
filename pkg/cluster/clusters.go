package cluster

import (
	"maps"
	"slices"

	"bonsai/pkg/cluster/kubeconfig"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/plan"
)

// Clusters returns the clusters of this machine, running or stopped (machine.Home.Clusters), with those that only the
// user's kubeconfig names. If the kubeconfig cannot be read, these are missing: whoever needs it says what is wrong
// with it (start.Before, PrintList).
func Clusters(home machine.Home) ([]plan.Config, error) {
	contexts, err := kubeconfig.Owners()
	if err != nil {
		contexts = nil
	}
	return home.Clusters(slices.Collect(maps.Values(contexts)))
}

// Find returns the data directory of the cluster of that name: its usual place, unless the cluster is elsewhere.
func Find(home machine.Home, name string) (string, error) {
	all, err := Clusters(home)
	if err != nil {
		return "", err
	}
	return home.Find(name, all)
}
