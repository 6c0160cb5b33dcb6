package inflight

import (
	"slices"

	"bonsai/pkg/apiserver/request"
)

// Lane is whose permits a request may take.
type Lane int

const (
	// Others are people, workloads and all others with credentials.
	Others Lane = iota
	// System are the nodes and the components and controllers of the control plane.
	System
	// Leases are the writes and reads by which nodes show that they live and components that they lead. A node or
	// component that cannot do them in time is given up by the cluster, so they come before all else.
	Leases
	// Exempt are members of system:masters, who must be able to repair a flooded server, and health checks.
	Exempt
)

// Members of the control plane that are no nodes and no service accounts.
var components = []string{"system:kube-controller-manager", "system:kube-scheduler", "system:kube-proxy"}

const (
	systemAccounts  = request.GroupServiceAccounts + ":kube-system"
	systemNamespace = "kube-system"
	nodeNamespace   = "kube-node-lease"
)

// LaneOf tells in which lane user asks info.
func LaneOf(user *request.User, info *request.Info) Lane {
	if user == nil {
		return Others
	}
	if user.InGroup(request.GroupMasters) {
		return Exempt
	}
	node := user.InGroup(request.GroupNodes)
	if !node && !user.InGroup(systemAccounts) && !slices.Contains(components, user.Name) {
		return Others
	}
	if info.APIGroup == "coordination.k8s.io" && info.Resource == "leases" &&
		(node && info.Namespace == nodeNamespace || !node && info.Namespace == systemNamespace) {
		return Leases
	}
	return System
}
