// Package framework defines what scheduler plug-ins are and what they see: pods and nodes in the form that decisions are
// made from, the extension points with their contracts, and a Profile that runs the plug-ins of one scheduler name.
//
// A scheduling cycle calls, in this order: PreFilter, Filter per node, PostFilter if no node is left, PreScore, Score and
// NormalizeScore, Reserve, Permit. The binding cycle, concurrent with the next scheduling cycles, calls PreBind, Bind and
// PostBind. PreEnqueue and QueueSort belong to the queue. A plug-in that failed a node says by EventsToRegister which
// changes of the cluster may help the pod; only those wake it up.
//
// Everything here is pure: a Snapshot does not change under a decision, time and randomness are given.
package framework
