// Package host is what a cluster's command does with the machine that it runs on: it runs the machine's programs,
// writes files whole or not at all, waits and locks, and reads what the kernel shows of processes, mounts, disks and
// links.
//
// It knows no cluster. Its functions take paths, names of links and marks, so that they can be used, and tested,
// without one. Below it, cgroup has the control groups and kernel the features that the kernel must have.
package host
