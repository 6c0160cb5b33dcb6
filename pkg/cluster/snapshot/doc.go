// Package snapshot copies the state of a cluster, and puts a copy in its place.
//
// A restoration first copies the snapshot beside the cluster's state and then renames one part after the other. It can
// be interrupted at any moment: before the first rename the cluster has its own state, and afterwards Finish completes
// it.
package snapshot
