package server

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// maxCheckpoint bounds how long a client may have a container stopped for its checkpoint.
const maxCheckpoint = time.Hour

// checkpoint writes a container's checkpoint. There is one at a time on the node, because each takes the memory of its
// container again, on the disk.
func (s *Server) checkpoint(w http.ResponseWriter, r *http.Request) {
	pod, ok := s.podOf(w, r)
	if !ok {
		return
	}
	container := r.PathValue("container")
	if !hasContainer(pod, container) {
		http.Error(w, fmt.Sprintf("container %v does not exist", container), http.StatusNotFound)
		return
	}
	var timeout time.Duration
	if text := r.URL.Query().Get("timeout"); text != "" {
		seconds, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			http.Error(w, "cannot parse value of timeout parameter", http.StatusBadRequest)
			return
		}
		timeout = min(time.Duration(seconds)*time.Second, maxCheckpoint)
	}
	select {
	case s.checkpoints <- struct{}{}:
		defer func() { <-s.checkpoints }()
	case <-r.Context().Done():
		return
	}
	path, err := s.cfg.Runtime.Checkpoint(r.Context(), pod, container, timeout)
	if err != nil {
		http.Error(w, fmt.Sprintf("checkpointing of %v/%v/%v failed (%v)", pod.Namespace, pod.Name, container, err),
			http.StatusInternalServerError)
		return
	}
	s.writeJSON(w, map[string][]string{"items": {path}})
}
