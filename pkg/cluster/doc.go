// Package cluster runs a whole local cluster of real processes on one machine: it makes the PKI and the kubeconfigs,
// starts and supervises etcd, the control plane and the nodes, loads the local images, installs the add-ons, and takes
// all of it away again.
//
// It has one function for each command of bonsai: Up, Serve, Stop, Down, Pause, Resume, Join, AddNode, RemoveNode,
// SaveSnapshot, RestoreSnapshot, PrintStatus, … Each loads the cluster's configuration, takes the lock that it needs,
// and calls the packages below.
//
// # Parts
//
// plan says what a cluster is to be, purely. host, client and supervise are what all parts use: the machine, the API
// server, and processes that are kept running. datadir and machine find clusters and look for collisions. Each other
// package is one part: pki, kubeconfig, controlplane, etcd, node, network, publish, image, addon, snapshot, join, dns,
// status, logs, pause, teardown, systemd. They do not know each other. Three packages put them together: start (the
// steps around a start), supervisor (the process that keeps a cluster running) and containerized (a cluster of
// containers).
//
// # Processes
//
// `bonsai up` starts one supervisor in the background. Its children are the control plane, in the host's namespaces,
// and one init process per node. Several control planes are in a network namespace each, and on the host there is a
// balancer (package balancer) before their API servers. A node is a set of namespaces (network, mount, PID,
// UTS, IPC, cgroup); its init starts containerd, kubelet and kube-proxy in it. Every child dies with its parent, so
// ending the supervisor ends the cluster, and ending a node's init is a power failure of that node: nothing can be left
// running.
//
// # Network
//
//	host (API server)            10.77.0.1  bonsai-<id> ──┐
//	control planes cp1, cp2, …   10.77.0.2  eth0        ──┤ (if there are several)
//	node n1                      10.77.0.11 eth0        ──┤ bridge in the network namespace bonsai-<id>
//	node n2                      10.77.0.12 eth0        ──┘
//	pods of a node               a /24 of 10.244.0.0/16 behind the node's bridge cni0
//	services                     10.96.0.0/16, known to kube-proxy on the nodes only
//
// With --ip-family ipv6 or dual the same things have addresses in fd00::/16, which contain those of IPv4
// (plan.Networks): the nodes fd00:b05a:a4d::/64, the pods a /80 each of fd00:b05b:af4::/64, the services
// fd00:b05c:a60::/108. Only this machine knows them.
//
// These are the first cluster's addresses. Each further cluster on the machine has the next slot of addresses and ports
// (plan.Machine).
//
// The bridge is in a namespace of its own so that the host's packet filter (Docker's "FORWARD DROP") never sees packets
// between nodes. While the cluster is up, unreachable routes keep packets for these networks on the machine. The
// administrator's kubeconfig leads to the API server by loopback: a client that still has it when the cluster is gone
// finds a closed port, and nothing has to stay on the host for its sake.
//
// # Owners
//
// Everything on the host that a cluster makes outside its data directory carries its mark, bonsai-<id>, which follows
// from the data directory's path: the link and its rules, the network namespace, the packet rules' table, the cgroups
// that hold its processes, the routes (their metric is the id), the user's kubeconfig context (it names the data
// directory). A cluster removes the things with its own mark and nothing else, before every start and at every end,
// however its last life ended.
package cluster
