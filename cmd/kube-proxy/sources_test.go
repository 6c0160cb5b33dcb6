package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"bonsai/pkg/apiclient/core"
)

func named(name, version string) corev1.Service {
	return corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", ResourceVersion: version}}
}

// told is a sink that says what it was told.
type told chan<- string

func (c told) Replace(all []*corev1.Service) {
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	c <- "list " + strings.Join(names, ",")
}
func (c told) Set(s *corev1.Service)    { c <- "set " + s.Name }
func (c told) Delete(s *corev1.Service) { c <- "delete " + s.Name }

// TestServices: the list replaces, events change, headless services and other proxies' are not asked for, and there is
// no streaming list, which would hold all objects.
func TestServices(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Get("labelSelector") != served || q.Get("sendInitialEvents") != "" || r.URL.Path != "/api/v1/services" {
			asked <- r.URL.String()
		}
		w.Header().Set("Content-Type", "application/json")
		encode := json.NewEncoder(w).Encode
		if q.Get("watch") == "" {
			_ = encode(corev1.ServiceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceList"},
				ListMeta: metav1.ListMeta{ResourceVersion: "5"},
				Items:    []corev1.Service{named("a", "1"), named("b", "2")}})
			return
		}
		if q.Get("resourceVersion") == "5" {
			_ = encode(map[string]any{"type": "ADDED", "object": named("c", "6")})
			_ = encode(map[string]any{"type": "DELETED", "object": named("a", "7")})
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()

	client, err := newClient(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 10)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		source(core.Services(client), served, told(got), slog.New(slog.DiscardHandler))(ctx)
	}()
	for _, want := range []string{"list a,b", "set c", "delete a"} {
		select {
		case s := <-got:
			if s != want {
				t.Errorf("got %q, want %q", s, want)
			}
		case url := <-asked:
			t.Fatalf("unexpected request %s", url)
		case <-time.After(10 * time.Second):
			t.Fatalf("no %q", want)
		}
	}
	cancel()
	<-done
}
