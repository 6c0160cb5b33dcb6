package plan

// hasTraces reports whether this machine keeps the cluster's traces: the first machine does, unless the user does not
// want it. Machines that joined have no process yet that would forward theirs, and containers share no sockets. The
// add-on tracestore.Addon follows from it.
func hasTraces(c Config) bool { return !c.NoTraces && c.Joined == nil && !c.Containerized }

// Traces is the directory in which the traces are kept over restarts. Snapshots do not have it.
func (l Layout) Traces() string { return l.At("traces") }

// SpansSocket is where the processes on the host send their spans, in a directory of its own: it may be entered by its
// owner alone.
func (l Layout) SpansSocket() string { return l.At("run", "spans", "otlp.sock") }

// Tracing is the file that tells the control plane to send its spans to SpansSocket.
func (l Layout) Tracing() string { return l.At("run", "tracing.yaml") }

// NodeSpansSocket is where the processes of a node send theirs. It is in the directory that the node sees.
func (l Layout) NodeSpansSocket(node string) string { return l.At("run", node, "otlp.sock") }

// NodeTracesSocket is where a node reaches the API of traces, for those who come by tracestore.Port.
func (l Layout) NodeTracesSocket(node string) string { return l.At("run", node, "api.sock") }
