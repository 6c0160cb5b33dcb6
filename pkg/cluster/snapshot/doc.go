// Package snapshot copies the state of a cluster, and puts a copy in its place.
//
// A restoration first copies the snapshot beside the cluster's state, into the directory Restoring. When the copy is
// complete it renames that to Restored, and then moves one part after the other into place. It can be interrupted at
// any moment: before the rename to Restored the cluster has its own state, and afterwards Finish completes the rest.
package snapshot
