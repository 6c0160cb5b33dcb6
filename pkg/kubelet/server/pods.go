package server

import (
	"encoding/json"
	"net/http"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (s *Server) pods(w http.ResponseWriter, _ *http.Request) { s.writePods(w, s.cfg.Pods.Pods()) }

func (s *Server) runningPods(w http.ResponseWriter, r *http.Request) {
	pods, err := s.cfg.Runtime.RunningPods(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.writePods(w, pods)
}

// writePods writes pods as a v1 PodList.
func (s *Server) writePods(w http.ResponseWriter, pods []*corev1.Pod) {
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"},
		Items: make([]corev1.Pod, 0, len(pods))}
	for _, p := range pods {
		list.Items = append(list.Items, *p)
	}
	s.writeJSON(w, list)
}

func (s *Server) configz(w http.ResponseWriter, _ *http.Request) {
	s.writeJSON(w, map[string]any{"kubeletconfig": s.cfg.Configz()})
}

func (s *Server) stats(w http.ResponseWriter, r *http.Request) {
	// A value that is no boolean asks for everything, as in Kubernetes.
	onlyCPUAndMemory, _ := strconv.ParseBool(r.URL.Query().Get("only_cpu_and_memory"))
	summary, err := s.cfg.Stats(r.Context(), onlyCPUAndMemory)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.writeJSON(w, summary)
}

func (s *Server) writeJSON(w http.ResponseWriter, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if _, err := w.Write(data); err != nil {
		s.cfg.Log.Debug("client left before its answer", "err", err)
	}
}
