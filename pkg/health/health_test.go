package health

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"bonsai/pkg/referencetest"
)

func get(paths map[string]http.Handler, target string) (int, string) {
	path, _, _ := strings.Cut(target, "?")
	h := paths[path]
	if h == nil {
		return http.StatusNotFound, ""
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
	return w.Code, w.Body.String()
}

// The answers are what Kubernetes documents ("Kubernetes API health endpoints").
func TestEndpoints(t *testing.T) {
	t.Parallel()
	e := New(slog.New(slog.DiscardHandler))
	bad := Check{"sync", func(*http.Request) error { return errors.New("a secret detail") }}
	paths := e.Paths("readyz", []Check{Ping(), bad})
	for target, want := range map[string]string{
		"/readyz":                      "500 [+]ping ok\n[-]sync failed: reason withheld\nreadyz check failed\n",
		"/readyz?exclude=sync":         "200 ok",
		"/readyz?exclude=sync&verbose": "200 [+]ping ok\n[+]sync excluded: ok\nreadyz check passed\n",
		"/readyz/ping":                 "200 ok",
		"/readyz/ping?verbose":         "200 [+]ping ok\nreadyz check passed\n",
		"/readyz/sync":                 "500 [-]sync failed: reason withheld\nreadyz check failed\n",
		"/readyz/other":                "404 ",
	} {
		code, body := get(paths, target)
		if got := strconv.Itoa(code) + " " + body; got != want {
			t.Errorf("%s: %q, want %q", target, got, want)
		}
	}
}

func TestSLIs(t *testing.T) {
	t.Parallel()
	e := New(slog.New(slog.DiscardHandler))
	var err error
	paths := e.Paths("livez", []Check{{"loop", func(*http.Request) error { return err }}})
	get(paths, "/livez")
	err = errors.New("stuck")
	get(paths, "/livez")
	_, body := get(map[string]http.Handler{"/metrics/slis": e.SLIs()}, "/metrics/slis")
	for _, want := range []string{
		`kubernetes_healthcheck{name="loop",type="livez"} 0`,
		`kubernetes_healthchecks_total{name="loop",status="error",type="livez"} 1`,
		`kubernetes_healthchecks_total{name="loop",status="success",type="livez"} 1`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
}

// TestReferenceMetrics: docs/reference has the metrics of health checks as they are.
func TestReferenceMetrics(t *testing.T) {
	t.Parallel()
	e := New(slog.New(slog.DiscardHandler))
	referencetest.MetricsPage(t, "health", "Metrics of health checks", "At `/metrics/slis` of each component.",
		"./pkg/health", referencetest.Metrics(e.registry))
}
