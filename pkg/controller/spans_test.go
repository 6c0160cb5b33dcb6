package controller

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/trace"
	"bonsai/pkg/trace/tracetest"
)

// TestLoopRecordsWhatItMakes: an object that a round creates has a span of the round, and the round is one of the
// object's owner. A round that creates nothing has none.
func TestLoopRecordsWhatItMakes(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pod := corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
		pod.Namespace, pod.Name, pod.UID = "ns", "web-1", "f3a1c2d4-0b5e-4c6f-8a7b-9c0d1e2f3a4b"
		yes := true
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web",
			UID: "00112233-4455-4677-8899-aabbccddeeff", Controller: &yes}}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		if err := json.NewEncoder(w).Encode(pod); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	scheme, err := apiclient.NewScheme(corev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	client, err := apiclient.New(&rest.Config{Host: server.URL}, scheme)
	if err != nil {
		t.Fatal(err)
	}
	tracer, spans := tracetest.New("kube-controller-manager")
	ctx, cancel := context.WithCancel(trace.With(t.Context(), tracer))
	done := make(chan string, 2)
	l := testLoop(1, func(ctx context.Context, key string) (Result, error) {
		defer func() { done <- key }()
		if key == "idle" {
			return Result{}, nil
		}
		_, err := core.Pods(client).Create(ctx,
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-1"}})
		return Result{}, err
	})
	l.Add("idle")
	l.Add("busy")
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	for range 2 {
		select {
		case <-done:
		case <-time.After(30 * time.Second):
			t.Fatal("nothing is reconciled")
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got, want := spans.Names(), []string{"kube-controller-manager.test",
		"test.reconcile"}; !slices.Equal(got, want) {
		t.Fatalf("%q, want %q", got, want)
	}
	made, round := spans.All()[0], spans.All()[1]
	if tracetest.Attribute(made, "bonsai.object.resource") != "pods" ||
		tracetest.Attribute(made, "k8s.pod.name") != "web-1" ||
		made.Links()[0].SpanContext.SpanID() != round.SpanContext().SpanID() ||
		tracetest.Attribute(round, "k8s.replicaset.name") != "web" {
		t.Errorf("made %v, links %v; round %v", made.Attributes(), made.Links(), round.Attributes())
	}
}
