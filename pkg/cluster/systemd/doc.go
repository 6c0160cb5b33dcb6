// Package systemd is what a cluster's supervisor says to systemd, and asks of it: a place in its tree of cgroups, and a
// service that is ready when the cluster is.
//
// On a machine without systemd, and in a process that is not a service, its functions do nothing, or return what holds
// without systemd.
package systemd
