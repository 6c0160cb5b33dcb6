package server

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// containerLogs streams a container's log. After the first byte an error can only end the answer, since the status code
// is sent already.
func (s *Server) containerLogs(w http.ResponseWriter, r *http.Request) {
	o, err := logOptions(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	ns, name, container := r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container")
	pod, ok := s.cfg.Pods.Pod(ns, name)
	if !ok {
		http.Error(w, fmt.Sprintf("pod %q does not exist\n", name), http.StatusNotFound)
		return
	}
	if !hasContainer(pod, container) {
		http.Error(w, fmt.Sprintf("container %q not found in pod %q\n", container, name), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	out := &flushing{w: w, c: http.NewResponseController(w)}
	if o.Follow { // the client must learn that it is connected before the first line
		out.c.Flush()
	}
	if err := s.cfg.Logs.ContainerLogs(r.Context(), pod, container, o, out,
		out); err != nil && r.Context().Err() == nil {
		if out.wrote || o.Follow {
			s.cfg.Log.Warn("container log broke off", "pod", ns+"/"+name, "container", container, "err", err)
			return
		}
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

// flushing sends every write at once: with follow, a line must not wait in a buffer for the next one.
type flushing struct {
	w     http.ResponseWriter
	c     *http.ResponseController
	wrote bool
}

func (f *flushing) Write(p []byte) (int, error) {
	f.wrote = true
	n, err := f.w.Write(p)
	if err == nil {
		err = f.c.Flush()
	}
	return n, err
}

// logOptions reads the query of a log request; names and meaning are those of PodLogOptions. The API server has
// validated them, but other clients come here, too.
func logOptions(q url.Values) (*corev1.PodLogOptions, error) {
	o := &corev1.PodLogOptions{}
	for name, field := range map[string]*bool{"follow": &o.Follow, "previous": &o.Previous,
		"timestamps": &o.Timestamps} {
		*field = truthy(q, name)
	}
	for name, field := range map[string]**int64{"tailLines": &o.TailLines, "sinceSeconds": &o.SinceSeconds,
		"limitBytes": &o.LimitBytes} {
		v := q.Get(name)
		if v == "" {
			continue
		}
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < 0 || name != "tailLines" && n == 0 {
			return nil, fmt.Errorf("%s: Invalid value: %q", name, v)
		}
		*field = &n
	}
	if v := q.Get("sinceTime"); v != "" {
		at, err := time.Parse(time.RFC3339, v)
		if err != nil {
			return nil, fmt.Errorf("sinceTime: Invalid value: %q", v)
		}
		t := metav1.NewTime(at)
		o.SinceTime = &t
	}
	if v := q.Get("stream"); v != "" {
		switch v {
		case corev1.LogStreamAll, corev1.LogStreamStdout, corev1.LogStreamStderr:
			o.Stream = &v
		default:
			return nil, fmt.Errorf("stream: Unsupported value: %q: supported values: %q, %q, %q", v,
				corev1.LogStreamAll, corev1.LogStreamStderr, corev1.LogStreamStdout)
		}
	}
	return o, nil
}

// truthy reads a boolean parameter as Kubernetes does: any value is true, except "0" and "false" in any case.
func truthy(q url.Values, name string) bool {
	values, set := q[name], false
	_ = runtime.Convert_Slice_string_To_bool(&values, &set, nil) // takes every value
	return set
}

func hasContainer(pod *corev1.Pod, name string) bool {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return true
			}
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if pod.Spec.EphemeralContainers[i].Name == name {
			return true
		}
	}
	return false
}
