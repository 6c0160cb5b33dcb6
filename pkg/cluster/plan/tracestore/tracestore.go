// Package tracestore has the names of what keeps a cluster's traces: its process, its API and the way there.
package tracestore

const (
	// Name is the name of the process, of its certificate and kubeconfig, and of its log.
	Name = "bonsai-traces"
	// Addon is the add-on with the objects of the API traces.bonsai.io. A cluster with the add-on has the process.
	Addon = "traces"
	// Service is the Service of that API, in kube-system.
	Service = "traces"
	// Port is where each node leads to that API. The API server must not connect to its own machine, and so not to the
	// process itself, which is on the host.
	Port = 10270
)
