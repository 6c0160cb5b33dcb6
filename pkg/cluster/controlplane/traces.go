package controlplane

import (
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/componentflags"
	"bonsai/pkg/cluster/plan/tracestore"
	"bonsai/pkg/cluster/supervise"
)

// HasTraces reports whether this machine has the process of Traces.
func HasTraces(c plan.Config) bool { return plan.SendsSpans(c) && c.HasControlPlane() }

// Traces returns the process that keeps the cluster's traces. It runs on the host and listens on sockets alone: one for
// spans of the control plane, and in the directory of each node one for the node's spans and one for the API, to which
// the node leads from tracestore.Port.
//
// The authorities are those of files: the API server's first request comes before there is anything to ask it.
//
// On a machine that has joined with a control plane, the process sends the spans of that on.
//
// It is in no layer of Processes: its flags change with the nodes.
func Traces(c plan.Config) supervise.Process {
	l := c.Layout()
	kubeconfig := l.Kubeconfig(tracestore.Name)
	if c.Joined != nil {
		return supervise.Process{Name: tracestore.Name, Log: l.Log(tracestore.Name),
			Argv: tracestore.Forwarder(c.Bin(tracestore.Name), kubeconfig, l.SpansSocket())}
	}
	args := []string{c.Bin(tracestore.Name),
		"--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--tls-cert-file=" + l.PKI(tracestore.Name+".crt"), "--tls-private-key-file=" + l.PKI(tracestore.Name+".key"),
		"--client-ca-file=" + l.PKI("ca.crt"), "--requestheader-client-ca-file=" + l.PKI("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--secure-port=0", "--data-dir=" + l.Traces(), "--otlp-socket=" + l.SpansSocket(),
	}
	for _, n := range c.Nodes {
		args = append(args, "--node-socket="+n.Name()+"="+l.NodeSpansSocket(n.Name()),
			"--serving-socket="+l.NodeTracesSocket(n.Name()))
	}
	return supervise.Process{Name: tracestore.Name, Log: l.Log(tracestore.Name),
		Argv: componentflags.Add(args, c.ComponentFlags[tracestore.Name])}
}

// WriteTracing writes the file by which the control plane sends its spans. Each start writes it before the processes
// begin (start.Write).
func WriteTracing(c plan.Config) error {
	if !plan.SendsSpans(c) {
		return nil
	}
	return host.WriteFile(c.Layout().Tracing(), tracestore.File(c.Layout().SpansSocket()))
}

// tracing is the flag by which kube-apiserver sends its spans, none if nobody keeps them.
func tracing(c plan.Config) []string {
	if !plan.SendsSpans(c) {
		return nil
	}
	return []string{"--tracing-config-file=" + c.Layout().Tracing()}
}

// tracingEnv is the environment by which other components send theirs. Kubernetes' own have no such flag, and could not
// take their place if they were given one.
func tracingEnv(c plan.Config) []string {
	if !plan.SendsSpans(c) {
		return nil
	}
	return []string{tracestore.Env + "=" + c.Layout().Tracing()}
}
