// Package etcd looks after the space of a cluster's etcds: it says which are full, and gives back what they do not use.
//
// It speaks to their JSON gateway, which needs no client library of etcd's.
package etcd
