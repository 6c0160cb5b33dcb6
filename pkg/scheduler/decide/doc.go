// Package decide chooses the node for a pod.
//
// Plain runs the profile's plug-ins over all nodes: the definition of the right answer. Incremental gives the same
// answer from what it kept of earlier decisions: for pods of one class the verdicts and scores of node-local plug-ins
// per node, and for plug-ins that compare pods with each other their counts per topology domain. A node is evaluated
// again only after it changed; what is left per pod is one pass over flat arrays of numbers. A pod that names its nodes
// has only these looked at, and one that a slow plug-in concerns goes the plain way. Among nodes of the best score both
// choose by chance.
package decide
