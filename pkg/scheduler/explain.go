package scheduler

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"bonsai/pkg/scheduler/framework"
)

// explanation is why a pod waits, as data.
type explanation struct {
	Pod      string `json:"pod"`
	Attempts int    `json:"attempts"`
	Gated    string `json:"gatedBy,omitempty"`
	Message  string `json:"message,omitempty"`
	// Nodes has the reason of the last try for each node that refused the pod.
	Nodes map[string]nodeReason `json:"nodes,omitempty"`
}

// nodeReason is what kept a pod off one node.
type nodeReason struct {
	Plugin  string   `json:"plugin"`
	Reasons []string `json:"reasons"`
	Detail  string   `json:"detail,omitempty"`
	// Resolvable by preemption of other pods.
	Resolvable bool `json:"resolvable"`
}

// Explain serves the pods that wait, all or those of ?pod=namespace/name, as a JSON list.
func (s *Scheduler) Explain(w http.ResponseWriter, r *http.Request) {
	only := r.URL.Query().Get("pod")
	out := []explanation{}
	s.Queue.Waiting(func(p framework.QueuedPod) bool {
		if only == "" || p.Key() == only {
			out = append(out, explain(p))
		}
		return true
	})
	slices.SortFunc(out, func(a, b explanation) int { return strings.Compare(a.Pod, b.Pod) })
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(out); err != nil {
		s.Log.Debug("answering /debug/scheduling failed", "err", err)
	}
}

func explain(p framework.QueuedPod) explanation {
	e := explanation{Pod: p.Key(), Attempts: p.Attempts, Gated: p.Gated}
	if d := p.Diagnosis; d != nil {
		e.Message, e.Nodes = d.Message(), map[string]nodeReason{}
		for node, st := range d.Statuses {
			e.Nodes[node] = nodeReason{Plugin: st.Plugin, Reasons: st.Reasons, Detail: st.Detail,
				Resolvable: st.Code == framework.Unschedulable}
		}
	}
	return e
}
