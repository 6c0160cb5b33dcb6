// Package controlplane lists the processes of the control planes of a cluster with their flags, and enters the
// namespaces of one of several.
package controlplane
