// Package cgroup holds the processes of a cluster in control groups, of version 1 or 2 as the machine has them.
//
// A cluster has a tree of groups in each hierarchy, whose root is called as the cluster's mark. It holds every process
// of the cluster, since a child begins in its parent's group and nothing inside a node can move itself out of the
// node's. So whatever became of the supervisor, the groups say what is left to end.
package cgroup
