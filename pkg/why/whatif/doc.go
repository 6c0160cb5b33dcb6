// Package whatif foresees what would follow from a change: which pods would be placed where, which would wait and why,
// which budgets would forbid it or break. The scheduler's own plug-ins decide on a copy of the cluster, pod by pod in
// the order of its queue. Nothing is written.
//
// Admission's own plug-ins complete and refuse the pods and claims that the change makes, and quotas are counted. What
// the kubelets make of the pods is not foreseen.
package whatif
