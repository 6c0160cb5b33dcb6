// Package framework is what the author of a scheduler plug-in implements and gets: the extension points with their
// contracts, Status, CycleState, the Diagnosis of a pod that fits nowhere, and what a plug-in declares of its results.
// Pods and nodes are in package model, cluster events in package clusterevent; package profile runs the plug-ins.
//
// A scheduling cycle calls, in this order: PreFilter, Filter per node, PostFilter if no node is left, PreScore, Score
// and NormalizeScore, Reserve, Permit. The binding cycle, concurrent with the next scheduling cycles, calls PreBind,
// Bind and PostBind. PreEnqueue and QueueSort belong to the queue. A plug-in that turned a pod down says by
// EventsToRegister which changes of the cluster may help it; only those wake the pod.
//
// Everything here is pure: time and randomness are arguments.
package framework
