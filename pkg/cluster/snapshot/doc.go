// Package snapshot copies the state of a cluster, and puts a copy in its place.
//
// A restoration copies a snapshot to the directory Restoring below the data directory, and renames that to Restored
// when all of it is there. From
// then on the cluster's state is what Restored has and, of parts that it no longer has, what is in place. So it can
// be broken off at any
// moment, and finished later.
package snapshot
