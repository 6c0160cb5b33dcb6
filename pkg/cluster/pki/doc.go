// Package pki makes the certificates of a cluster.
//
// There are three authorities: the cluster's, the front proxy's, and etcd's, which trusts no one else. Each
// component has an identity
// of its own, so that what it may do can be told from what others may. Certificates live for a year and are made
// again at a start in
// their last month.
package pki
