package tracestore

import "fmt"

// AllSpans is the sampling rate of a cluster's components: every trace is recorded. The store is bounded, and drops
// what nobody has looked at for the longest time.
const AllSpans = 1_000_000

// Env names a component's file in its environment, which Kubernetes' own components do not read.
const Env = "BONSAI_TRACING_CONFIG_FILE"

// Forwarder is the command line of the process that takes spans on a socket of a machine that has joined, and sends
// them on to the API of traces, as the user of a kubeconfig.
func Forwarder(program, kubeconfig, socket string) []string {
	return []string{program, "--forward-kubeconfig=" + kubeconfig, "--otlp-socket=" + socket, "--secure-port=0"}
}

// File is a TracingConfiguration that sends all spans to a socket.
func File(socket string) []byte {
	return fmt.Appendf(nil, "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: %q\n"+
		"samplingRatePerMillion: %d\n", "unix://"+socket, AllSpans)
}
