package apiserver_test

import (
	"io"
	"log/slog"
	"testing"

	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/referencetest"
)

// TestReferenceMetrics: docs/reference has the metrics of a whole server as they are.
func TestReferenceMetrics(t *testing.T) {
	t.Parallel()
	r := referencetest.NewRegistry()
	start(t, func(c *assemble.Config) {
		c.HTTP.Metrics = r
		withCountedParts(t, c, r, func(o *assemble.Options) {
			o.Admission.Manifests = map[string]string{"ValidatingAdmissionPolicy": t.TempDir()}
		})
		var err error
		c.HTTP.Auditor, err = assemble.NewAuditor(t.Context(), &assemble.Audit{}, io.Discard, r,
			slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		c.Parts.Fairness = nil // on a page of its own: what it shows depends on who asked
	})
	referencetest.MetricsPage(t, "kube-apiserver", "Metrics of kube-apiserver", "At `/metrics`, beside "+
		"[those of every component](common.md) and [those of priority and fairness](kube-apiserver-fairness.md).",
		"./pkg/apiserver", r.Metrics())
}
