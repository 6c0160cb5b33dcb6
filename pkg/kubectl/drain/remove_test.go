package drain

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

// TestSkipWait: a pod that stays beyond its time to terminate is given up once --skip-wait-for-delete-timeout is over.
func TestSkipWait(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") == "true" {
			w.(http.Flusher).Flush()
			<-r.Context().Done() // nothing happens to it any more
			return
		}
		end := time.Now().Add(-time.Minute).UTC().Format(time.RFC3339)
		fmt.Fprintf(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"n","uid":"u","deletionTimestamp":%q}}`, end)
	}))
	defer s.Close()
	client, err := resource.NewClient(&rest.Config{Host: s.URL}, nil, nil, strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	o := &Options{nodes: nodes{Base: write.Base{Client: client}}, limits: limits{skipDeleted: 1}}
	pod := &corev1.Pod{}
	pod.Name, pod.Namespace, pod.UID = "p", "n", "u"
	if err := o.awaitEnd(t.Context(), pod); err != nil {
		t.Error(err)
	}
}

// TestTerminatingNamespace: a pod that cannot be evicted, as its namespace is being deleted, is waited for.
func TestTerminatingNamespace(t *testing.T) {
	t.Parallel()
	reads := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"because it is being terminated",`+
				`"details":{"causes":[{"reason":"NamespaceTerminating","field":"metadata.namespace"}]}}`)
		case reads == 0:
			reads++
			fmt.Fprint(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"n","uid":"u","deletionTimestamp":"2026-01-01T00:00:00Z"}}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		}
	}))
	defer s.Close()
	client, err := resource.NewClient(&rest.Config{Host: s.URL}, nil, nil, strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	o := &Options{nodes: nodes{
		Base: write.Base{Client: client, Flags: write.NewFlags(""), IOStreams: cli.IOStreams{Out: &out, ErrOut: &out}}},
		grace: -1}
	pod := corev1.Pod{}
	pod.Name, pod.Namespace, pod.UID = "p", "n", "u"
	if err := o.removeAll(t.Context(), []corev1.Pod{pod}); err != nil ||
		out.String() != "evicting pod n/p\npod/p evicted\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}
