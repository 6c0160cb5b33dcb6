// Package why answers why something in a cluster is as it is: why a pod waits, why a Service has no endpoints, why a
// namespace does not go. It reads the API only and changes nothing, so it works with any cluster.
//
// An Answer is a chain of causes in plain sentences. Each cause has its evidence, and the smallest change that helps if
// there is one. One package below explains one subject (an Explainer); it asks the Case about other subjects, as a
// Deployment's explainer does about pods, and never imports another one. cmd/kubectl-why joins them.
//
// An explainer must tell three things apart: what is there, what is absent, and what could not be read. "The ConfigMap
// is missing" is only true of the second; Get and List say which it is, and the Answer names the third.
package why
