package core

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"bonsai/pkg/apiclient"
)

// TestEventSink: client-go's recorder may write with it, and what it writes ends with the process.
func TestEventSink(t *testing.T) {
	t.Parallel()
	var asked []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"Event","apiVersion":"v1","metadata":{"name":"got"}}`))
	}))
	t.Cleanup(srv.Close)
	s, err := apiclient.NewScheme(corev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	c, err := apiclient.New(&rest.Config{Host: srv.URL}, s)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	var sink record.EventSink = NewEventSink(ctx, c)
	e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "e"}}
	for _, write := range []func() (*corev1.Event, error){
		func() (*corev1.Event, error) { return sink.Create(e) },
		func() (*corev1.Event, error) { return sink.Update(e) },
		func() (*corev1.Event, error) { return sink.Patch(e, []byte("{}")) },
	} {
		if got, err := write(); err != nil || got.Name != "got" {
			t.Errorf("%v, %v", got, err)
		}
	}
	if want := []string{"POST /api/v1/namespaces/ns/events", "PUT /api/v1/namespaces/ns/events/e",
		"PATCH /api/v1/namespaces/ns/events/e"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
	end()
	if _, err := sink.Create(e); err == nil {
		t.Error("writes on after the end")
	}
}
