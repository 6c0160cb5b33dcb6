// Package status prints the state of a cluster: its processes, its nodes and pods; and a list of clusters.
package status
