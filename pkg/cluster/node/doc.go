// Package node is what runs inside a node: a set of namespaces of network, mounts, PIDs, host name, IPC and cgroups.
//
// A node's init process is this program again. It lays out the node's file system and network, keeps containerd,
// kubelet, kube-proxy and the agent of the pod network running, serves the local images, and reaps orphans. With it
// everything in the node ends. It reads a Config and nothing else of the cluster. A Keeper is the one part that runs
// outside: in the supervisor, it makes the Config from the cluster's plan and starts the node.
package node
