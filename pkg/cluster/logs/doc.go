// Package logs finds and prints the logs of a cluster's processes, and exports them with the cluster's state for a bug
// report.
package logs
