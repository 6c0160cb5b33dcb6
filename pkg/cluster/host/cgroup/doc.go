// Package cgroup holds the processes of a cluster in control groups, of version 1 or 2 as the machine has them.
//
// A cluster has a tree of groups in each hierarchy. The name of the tree's root is the cluster's mark. The tree holds
// every process of the cluster: a child begins in its parent's group, and nothing inside a node can leave the node's
// group. So the groups show what is left to end, whatever became of the supervisor.
package cgroup
