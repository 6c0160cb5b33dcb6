// Package pki makes the certificates of a cluster.
//
// There are three authorities: the cluster's, the front proxy's, and etcd's, so that a certificate for one of them
// opens no door at the others. Each component has an identity of its own, and so its own permissions. Certificates live
// for a year, and a start in their last month replaces them.
package pki
