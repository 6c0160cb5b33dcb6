// Package testenv runs a control plane for tests: etcd, kube-apiserver, kube-controller-manager and kube-scheduler, as
// processes on loopback, with all that they write in one directory. There are no nodes: pods are made and scheduled,
// and stay Pending. What tests with an API server alone never have works: owned objects are collected, namespaces are
// deleted, Deployments make pods.
//
// One environment serves many tests: Reset brings all objects back to what they were in a few milliseconds, and
// Snapshot keeps a state of one's own to come back to. Both work on what etcd holds while the servers run, which see it
// as any other change. A controller that was about to write when its object went may write once more; what it makes
// then has an owner that is gone, and is collected.
//
// It needs no root. etcd listens at a socket in the directory and nowhere else, so that its objects, secrets among
// them, are seen by nobody else on the machine; the API server asks everybody for a certificate.
package testenv
