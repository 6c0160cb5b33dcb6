package proxy

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Arrival is an endpoint of a Service that became ready.
type Arrival struct {
	// Pod is behind the endpoint.
	Pod Name
	UID types.UID
	// Node is where the pod runs.
	Node    string
	Service Name
	// At is when the change happened in the cluster that the slice tells of.
	At time.Time
}

// maxArrivals bounds the arrivals that wait for their round: what is beyond is not recorded.
const maxArrivals = 4096

// noteArrivalsLocked notes the pods' endpoints that become ready with o. It comes before the slice is stored. Slices of
// the first list tell of no change, nor do those without the time of one.
func (s *State) noteArrivalsLocked(o *discoveryv1.EndpointSlice, sl *sliceFacts) {
	if !s.Arrivals || !s.listed["slices"] || sl.Trigger.IsZero() {
		return
	}
	old := s.slices[sl.Service][sl.Key]
	was := map[string]bool{}
	for i := range old.Endpoints {
		if e := &old.Endpoints[i]; e.Ready {
			was[e.Addr.String()] = true
		}
	}
	for i := range o.Endpoints {
		e, pod := &o.Endpoints[i], o.Endpoints[i].TargetRef
		facts, ok := readEndpoint(e)
		if !ok || !facts.Ready || pod == nil || pod.Kind != "Pod" || pod.UID == "" || was[facts.Addr.String()] ||
			len(s.arrivals) >= maxArrivals {
			continue
		}
		s.arrivals = append(s.arrivals, Arrival{Pod: podName(o, pod), UID: pod.UID, Node: facts.Node,
			Service: sl.Service, At: sl.Trigger})
	}
}

// podName names a pod behind an endpoint of a slice: a pod is in the namespace of its slice.
func podName(o *discoveryv1.EndpointSlice, pod *corev1.ObjectReference) Name {
	return Name{Namespace: o.Namespace, Name: pod.Name}
}
