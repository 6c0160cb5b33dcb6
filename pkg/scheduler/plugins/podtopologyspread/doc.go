// Package podtopologyspread spreads pods over the domains of topology keys, by the pod's topologySpreadConstraints or,
// for pods of a Service or controller without constraints of their own, by default over nodes and zones.
//
// plain.go counts all pods again for each pod; tracker.go keeps the same counts up to date node by node.
package podtopologyspread
