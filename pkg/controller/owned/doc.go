// Package owned is how a workload holds its children: which are its own (Claim), whose pods a change concerns (Pods),
// and which of its own writes its cache does not show yet (Expectations).
package owned
