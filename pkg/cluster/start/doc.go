// Package start has the steps of a cluster's start that stand around its supervisor: Before checks the machine, plans
// the cluster, removes what an earlier life left and writes the files that the processes read; After waits until the
// cluster is ready. It calls all the parts beside it.
package start
