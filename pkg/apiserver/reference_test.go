package apiserver_test

import (
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/apiserver/audit/sink"
	"bonsai/pkg/referencetest"
)

// Files that bring metrics of their own.
const (
	authorizers = `{apiVersion: apiserver.config.k8s.io/v1, kind: AuthorizationConfiguration,
  authorizers: [{type: Node, name: node}, {type: RBAC, name: rbac}]}`
	noted = `{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}]}`
)

// TestReferenceMetrics: docs/reference has the metrics of a whole server as they are, with every option that brings
// metrics.
func TestReferenceMetrics(t *testing.T) {
	t.Parallel()
	r := referencetest.NewRegistry()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	some := httptest.NewTLSServer(http.NotFoundHandler())
	defer some.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: some.Certificate().Raw})
	start(t, func(c *assemble.Config) {
		c.HTTP.Metrics = r
		withCountedParts(t, c, r, func(o *assemble.Options) {
			o.Admission.Manifests = map[string]string{"ValidatingAdmissionPolicy": t.TempDir()}
			o.Authentication.ClientCA = file("ca.crt", string(authority))
			o.Authorization.ConfigFile = file("authorization.yaml", authorizers)
		})
		var err error
		c.HTTP.Auditor, err = assemble.NewAuditor(t.Context(), &assemble.Audit{PolicyFile: file("policy.yaml", noted),
			Log: sink.LogOptions{Path: "-", Format: sink.JSON}}, io.Discard, r, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		c.Parts.Fairness = nil // on a page of its own: what it shows depends on who asked
	})
	referencetest.MetricsPage(t, "kube-apiserver", "Metrics of kube-apiserver", "At `/metrics`, beside "+
		"[those of every component](common.md) and [those of priority and fairness](kube-apiserver-fairness.md).",
		"./pkg/apiserver", r.Metrics())
}
