// Package encryption keeps the keys with which the API servers of a cluster encrypt its Secrets in etcd: it writes
// their file, changes the key, and remembers the keys that snapshots need.
//
// The first key of the file writes, all of them read. A key that leaves the file goes to a second file (KeptKeys) for
// as long as a snapshot needs it: the API servers do not read that one.
package encryption
