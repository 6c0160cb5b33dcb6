package plan

// SendsSpans reports whether the components of this machine send their spans to where the cluster's traces are kept.
// Containers do not: they share no sockets.
func SendsSpans(c Config) bool { return !c.NoTraces && !c.Containerized }

// hasTraces reports whether this machine keeps the cluster's traces: the first machine does. On those that joined,
// processes send the spans on to it. The add-on tracestore.Addon follows from it.
func hasTraces(c Config) bool { return SendsSpans(c) && c.Joined == nil }

// Traces is the directory in which the traces are kept over restarts. Snapshots do not have it.
func (l Layout) Traces() string { return l.At("traces") }

// SpansSocket is where the processes on the machine itself send their spans, in a directory of its own: it may be
// entered by its owner alone.
func (l Layout) SpansSocket() string { return l.At("run", "spans", "otlp.sock") }

// Tracing is the file that tells the control plane to send its spans to SpansSocket.
func (l Layout) Tracing() string { return l.At("run", "tracing.yaml") }

// NodeSpansSocket is where the processes of a node send theirs. It is in the directory that the node sees.
func (l Layout) NodeSpansSocket(node string) string { return l.At("run", node, "otlp.sock") }

// NodeTracesSocket is where a node reaches the API of traces, for those who come by tracestore.Port.
func (l Layout) NodeTracesSocket(node string) string { return l.At("run", node, "api.sock") }
