// Package whatif foresees what would follow from a change: which pods would be placed where, which would wait and why,
// which budgets would forbid it or break. The scheduler's own plug-ins decide on a copy of the cluster, pod by pod in
// the order of its queue. Nothing is written.
//
// It foresees placement alone: not what the kubelets make of the pods, and no quotas and no admission.
package whatif
