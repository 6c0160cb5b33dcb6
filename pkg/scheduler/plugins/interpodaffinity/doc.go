// Package interpodaffinity places pods near to or away from other pods, by the topology domains in which those run. The
// rules of both sides count: what the pod asks for, and what the existing pods ask for.
//
// plain.go looks at all pods again for each pod; tracker.go keeps the same counts up to date node by node.
package interpodaffinity
