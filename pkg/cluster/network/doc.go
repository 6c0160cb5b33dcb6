// Package network connects the nodes of a cluster with each other and with the host.
//
// It makes the bridge in a namespace of its own, the host's cable to it, and the host's packet rules, and follows the
// nodes with the host's routes to pods and load balancers. Everything carries the cluster's mark, and is removed by
// that alone.
package network
