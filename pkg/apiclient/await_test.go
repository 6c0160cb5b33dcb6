package apiclient

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
)

// TestAwait: a failing server is asked until it is ready or says that it is none of our business.
func TestAwait(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]int{"ready": http.StatusOK, "forbidden": http.StatusForbidden} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/readyz" {
					t.Errorf("asked for %s", r.URL)
				}
				code := http.StatusInternalServerError
				if asked.Add(1) == 3 {
					code = last
				}
				w.WriteHeader(code)
			}))
			defer srv.Close()
			var out bytes.Buffer
			clientOf(t, &rest.Config{Host: srv.URL}).Await(t.Context(), slog.New(slog.NewTextHandler(&out, nil)))
			if asked.Load() != 3 || out.Len() > 0 {
				t.Errorf("asked %d times; logged %s", asked.Load(), &out)
			}
		})
	}
}

// TestAwaitEnds: with its context, and says what is missing once.
func TestAwaitEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		cancel()
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer srv.Close()
	var out bytes.Buffer
	clientOf(t, &rest.Config{Host: srv.URL}).Await(ctx, slog.New(slog.NewTextHandler(&out, nil)))
	if strings.Count(out.String(), "the API server is not ready") != 1 {
		t.Errorf("logged %q", &out)
	}
}
