package executor

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestHTTPHook: a hook is told and its answer means nothing, and it reaches no host but its own, whatever is answered.
//
// https://kubernetes.io/docs/concepts/containers/container-lifecycle-hooks/#hook-handler-implementations
func TestHTTPHook(t *testing.T) {
	t.Parallel()
	var reached, rounds atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer other.Close()
	elsewhere := strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
	pod := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/error":
			w.WriteHeader(http.StatusInternalServerError)
		case "/elsewhere":
			http.Redirect(w, r, elsewhere, http.StatusFound)
		case "/first":
			http.Redirect(w, r, "/second", http.StatusFound)
		case "/second":
			http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
		case "/round":
			rounds.Add(1)
			http.Redirect(w, r, "/round", http.StatusFound)
		}
	}))
	defer pod.Close()
	u, err := url.Parse(pod.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	for path, ok := range map[string]bool{"/": true, "/error": true, "/elsewhere": true, "/first": true,
		"/round": false} {
		e, _, _ := newExecutor(t)
		err := e.httpHook(t.Context(), &corev1.Pod{}, &corev1.Container{},
			&corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(int32(port))}, u.Hostname())
		if (err == nil) != ok {
			t.Errorf("%s: %v", path, err)
		}
	}
	if reached.Load() > 0 || rounds.Load() > 10 {
		t.Errorf("another host was reached %d times; %d rounds", reached.Load(), rounds.Load())
	}
}

// TestHTTPSHook: an HTTPS hook speaks HTTP/2 with a server that does, and plain HTTP, without credentials and with an
// event, with one that has no TLS.
func TestHTTPSHook(t *testing.T) {
	t.Parallel()
	got := make(chan string, 1)
	answer := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got <- r.Proto + " " + r.Header.Get("Authorization")
	})
	secure, plain := httptest.NewUnstartedServer(answer), httptest.NewServer(answer)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	defer plain.Close()
	for server, want := range map[*httptest.Server]string{secure: "HTTP/2.0 token", plain: "HTTP/1.1 "} {
		u, err := url.Parse(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		e, f, _ := newExecutor(t)
		action := &corev1.HTTPGetAction{Scheme: corev1.URISchemeHTTPS, Port: intstr.Parse(u.Port()),
			HTTPHeaders: []corev1.HTTPHeader{{Name: "Authorization", Value: "token"}}}
		if err := e.httpHook(t.Context(), &corev1.Pod{}, &corev1.Container{}, action, u.Hostname()); err != nil {
			t.Fatal(err)
		}
		if seen := <-got; seen != want {
			t.Errorf("the server saw %q, want %q", seen, want)
		}
		told := strings.Join(f.notes, ", ")
		if fell := strings.Contains(told,
			"LifecycleHTTPFallback"); fell != (server == plain) || fell != strings.Contains(told, "count hook") {
			t.Errorf("from %s: %q", want, told)
		}
	}
}
