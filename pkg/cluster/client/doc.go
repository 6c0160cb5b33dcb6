// Package client asks the API server of a cluster, as its command does: for the state of nodes and pods, and until they
// are ready.
package client
