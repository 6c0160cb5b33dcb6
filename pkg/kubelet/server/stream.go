package server

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/proxy"

	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/safetext"
)

// exec runs a command in a container. The client's upgraded connection is passed through to the runtime's streaming
// server.
func (s *Server) exec(w http.ResponseWriter, r *http.Request) {
	pod, container, ok := s.target(w, r)
	if !ok {
		return
	}
	streams, ok := wanted(w, r)
	if !ok {
		return
	}
	command := r.URL.Query()[corev1.ExecCommandParam]
	if len(command) == 0 {
		http.Error(w, "you must specify a command", http.StatusBadRequest)
		return
	}
	to, err := s.cfg.Runtime.Exec(r.Context(), pod, container, command, streams)
	s.pass(w, r, to, err)
}

// attach connects to a container's process.
func (s *Server) attach(w http.ResponseWriter, r *http.Request) {
	pod, container, ok := s.target(w, r)
	if !ok {
		return
	}
	streams, ok := wanted(w, r)
	if !ok {
		return
	}
	to, err := s.cfg.Runtime.Attach(r.Context(), pod, container, streams)
	s.pass(w, r, to, err)
}

// portForward connects to ports of a pod. SPDY clients name them per stream, WebSocket clients in the query.
func (s *Server) portForward(w http.ResponseWriter, r *http.Request) {
	pod, ok := s.podOf(w, r)
	if !ok {
		return
	}
	var ports []int32
	for _, v := range r.URL.Query()["port"] {
		n, err := strconv.ParseUint(v, 10, 16)
		if err != nil || n == 0 {
			http.Error(w, fmt.Sprintf("invalid port %q", v), http.StatusBadRequest)
			return
		}
		ports = append(ports, int32(n))
	}
	to, err := s.cfg.Runtime.PortForward(r.Context(), pod, ports)
	s.pass(w, r, to, err)
}

// run runs a command to its end and answers with its output.
func (s *Server) run(w http.ResponseWriter, r *http.Request) {
	pod, container, ok := s.target(w, r)
	if !ok {
		return
	}
	q := r.URL.Query()
	command := q["cmd"]
	if len(command) == 0 {
		command = q[corev1.ExecCommandParam]
	}
	out, err := s.cfg.Runtime.Run(r.Context(), pod, container, command)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	if _, err := w.Write(out); err != nil {
		s.cfg.Log.Debug("client left before its answer", "err", err)
	}
}

// podOf finds the pod of the path. It answers 404 if there is none, or if the name now belongs to another pod than the
// uid in the path: a command must not run in a successor.
func (s *Server) podOf(w http.ResponseWriter, r *http.Request) (*corev1.Pod, bool) {
	pod, ok := s.cfg.Pods.Pod(r.PathValue("namespace"), r.PathValue("pod"))
	if uid := r.PathValue("uid"); !ok || uid != "" && uid != string(pod.UID) {
		http.Error(w, "pod does not exist", http.StatusNotFound)
		return nil, false
	}
	return pod, true
}

// target finds the pod and the container of the path, and answers 404 without them.
func (s *Server) target(w http.ResponseWriter, r *http.Request) (*corev1.Pod, string, bool) {
	pod, ok := s.podOf(w, r)
	if !ok {
		return nil, "", false
	}
	container := r.PathValue("container")
	if !hasContainer(pod, container) {
		http.Error(w, fmt.Sprintf("container not found (%q)", container), http.StatusNotFound)
		return nil, "", false
	}
	return pod, container, true
}

// wanted reads which streams the client asks for. A terminal has no stderr of its own: it arrives with stdout.
func wanted(w http.ResponseWriter, r *http.Request) (runtime.Streams, bool) {
	q := r.URL.Query()
	st := runtime.Streams{Stdin: truthy(q, corev1.ExecStdinParam), Stdout: truthy(q, corev1.ExecStdoutParam),
		Stderr: truthy(q, corev1.ExecStderrParam), TTY: truthy(q, corev1.ExecTTYParam)}
	if st.TTY {
		st.Stderr = false
	}
	if !st.Stdin && !st.Stdout && !st.Stderr {
		http.Error(w, "you must specify at least 1 of stdin, stdout, stderr", http.StatusBadRequest)
		return st, false
	}
	return st, true
}

// pass proxies the upgraded connection to the runtime, or answers with the runtime's error.
func (s *Server) pass(w http.ResponseWriter, r *http.Request, to *url.URL, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if s.cfg.Idle > 0 {
		w = idleWriter{w, s.cfg.Idle}
	}
	proxy.NewUpgradeAwareHandler(to, nil, false, true, responder{s}).ServeHTTP(w, r)
}

// responder answers when the runtime could not be reached.
type responder struct{ s *Server }

// Error implements proxy.ErrorResponder.
func (p responder) Error(w http.ResponseWriter, r *http.Request, err error) {
	code := http.StatusInternalServerError
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		code = int(status.Status().Code)
	}
	p.s.cfg.Log.Warn("stream not passed to the runtime", "path", safetext.Text(r.URL.Path), "err", err)
	http.Error(w, err.Error(), code)
}
