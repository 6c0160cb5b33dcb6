package lifecycle

import (
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
)

// maxMessages is how long the termination messages of a pod's containers may be together, in bytes; each container has
// an equal part.
const maxMessages = 12 << 10

// boundMessages cuts off termination messages, between two characters. A user chooses them, and every object is kept
// many times over: by etcd, by the API server's caches and by each client that watches pods.
func boundMessages(st *corev1.PodStatus) {
	lists := [...][]corev1.ContainerStatus{st.InitContainerStatuses, st.ContainerStatuses,
		st.EphemeralContainerStatuses}
	containers := 0
	for _, list := range lists {
		containers += len(list)
	}
	for _, list := range lists {
		for i := range list {
			for _, state := range []*corev1.ContainerState{&list[i].State, &list[i].LastTerminationState} {
				if t := state.Terminated; t != nil && len(t.Message) > maxMessages/containers {
					bounded := *t // the old status and the runtime's own facts share it
					bounded.Message = cut(t.Message, maxMessages/containers)
					state.Terminated = &bounded
				}
			}
		}
	}
}

// cut returns the beginning of text, of at most n bytes.
func cut(text string, n int) string {
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
