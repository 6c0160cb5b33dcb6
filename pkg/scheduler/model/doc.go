// Package model has pods and nodes in the form that scheduling decisions read: with requests, ports, affinity terms and
// spread constraints computed once, in a Snapshot that does not change under a decision.
//
// A Key is what a plug-in reads of a pod as one string, so that results can be shared by pods that read the same. The
// package is pure: it reads no clock and does no I/O.
package model
