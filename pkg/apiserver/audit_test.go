package apiserver_test

import (
	"bytes"
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"log/slog"
	stdmaps "maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/apiserver/audit/sink"
)

// withParts has the parts of Kubernetes, and the users of the recordings.
func withParts(t *testing.T, c *assemble.Config) {
	t.Helper()
	withCountedParts(t, c, nil)
}

// auditTokens are the users of the recordings.
const auditTokens = `auditadm,admin,u-admin,"system:masters"
auditali,alice,u-alice,"devs,more"
auditnob,nobody-logs-me,u-nob,"system:masters"
`

// accountKey makes a key for the tokens of service accounts, in PEM.
func accountKey(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
}

// withCountedParts is withParts, whose metrics are registered at r.
func withCountedParts(t *testing.T, c *assemble.Config, r prometheus.Registerer, changes ...func(*assemble.Options)) {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"sa.key": accountKey(t), "tokens": auditTokens}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := assemble.Options{
		Hostname: "vm", Metrics: r,
		Authentication: assemble.Authentication{Issuers: []string{"https://kubernetes.default.svc"},
			SigningKey: filepath.Join(dir, "sa.key"), TokenFile: filepath.Join(dir, "tokens"),
			AccountLookup: true},
		Authorization:    assemble.Authorization{Modes: []string{"Node", "RBAC"}},
		DisableAdmission: []string{"ServiceAccount"},
		ServiceRanges:    []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")},
		NodePorts:        utilnet.PortRange{Base: 30000, Size: 2768},
		Advertise:        netip.MustParseAddr("192.0.2.1"), Port: 6443,
	}
	for _, change := range changes {
		change(&o)
	}
	parts, err := assemble.NewParts(o, c.Catalog, c.Storage, c.Rows, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c.Parts = *parts
}

// withAudit has an audit log under a policy.
func withAudit(t testing.TB, c *assemble.Config, policy string, o sink.LogOptions) *prometheus.Registry {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	counted := prometheus.NewRegistry()
	o.Format = cmp.Or(o.Format, sink.JSON)
	auditor, err := assemble.NewAuditor(t.Context(), &assemble.Audit{PolicyFile: file, Log: o}, io.Discard, counted,
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c.HTTP.Auditor = auditor
	return counted
}

// auditEvents reads a log: the events of each Audit-ID.
func auditEvents(t *testing.T, file string) map[string][]map[string]any {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]map[string]any{}
	for line := range bytes.Lines(text) {
		var e map[string]any
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		id := e["auditID"].(string)
		for _, k := range []string{"requestReceivedTimestamp", "stageTimestamp"} {
			if _, err := time.Parse(time.RFC3339Nano, e[k].(string)); err != nil {
				t.Error(err)
			}
		}
		stdmaps.DeleteFunc(e, func(k string, _ any) bool {
			return k == "auditID" || k == "apiVersion" || k == "kind" || k == "requestReceivedTimestamp" ||
				k == "stageTimestamp"
		})
		out[id] = append(out[id], e)
	}
	return out
}

func shown(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A request whose first event cannot be written is refused if the log is strict, and served if it is not. A panic has
// an event.
func TestAuditFailures(t *testing.T) {
	t.Parallel()
	const policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]"
	for mode, want := range map[string]int{sink.BlockingStrict: http.StatusInternalServerError,
		sink.Blocking: http.StatusOK} {
		var counted *prometheus.Registry
		url := start(t, func(c *assemble.Config) {
			counted = withAudit(t, c, policy, sink.LogOptions{Path: "/dev/full", Options: sink.Options{Mode: mode}})
		})
		code, _, body := call(t, http.MethodGet, url+"/version", "")
		if code != want || (code != http.StatusOK) !=
			(body == "Internal Server Error: \"/version\": failed to store audit event\n") {
			t.Errorf("%s: %d %s", mode, code, body)
		}
		if n := count(t, counted, "apiserver_audit_error_total"); n == 0 {
			t.Errorf("%s: no lost event is counted", mode)
		}
		if n := count(t, counted,
			"apiserver_audit_requests_rejected_total"); (n != 0) != (mode == sink.BlockingStrict) {
			t.Errorf("%s: %v refused requests are counted", mode, n)
		}
	}
	file := filepath.Join(t.TempDir(), "audit.log")
	url := start(t, func(c *assemble.Config) {
		withAudit(t, c, policy, sink.LogOptions{Path: file, Options: sink.Options{Mode: sink.Blocking}})
	})
	if code, _, _ := call(t, http.MethodGet, url+"/panic", "", "Audit-Id",
		"p"); code != http.StatusInternalServerError {
		t.Error(code)
	}
	events := auditEvents(t, file)["p"]
	if len(events) != 2 || events[1]["stage"] != "Panic" || !reflect.DeepEqual(events[1]["responseStatus"],
		map[string]any{"metadata": map[string]any{}, "status": "Failure", "message": "APIServer panic'd: on purpose",
			"reason": "InternalError", "code": float64(500)}) {
		t.Error(shown(t, events))
	}
}

// count is the sum of a counter over its labels.
func count(t *testing.T, r *prometheus.Registry, name string) (sum float64) {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			sum += m.GetCounter().GetValue()
		}
	}
	return sum
}

// BenchmarkAudit says what a request costs without an audit log, under a policy that does not ask for it, and where it
// is noted.
func BenchmarkAudit(b *testing.B) {
	for _, c := range []struct{ name, level string }{{"without", ""}, {"None", "None"}, {"Metadata", "Metadata"},
		{"RequestResponse", "RequestResponse"}} {
		b.Run(c.name, func(b *testing.B) {
			_, server := startServer(b, func(cfg *assemble.Config) {
				if c.level != "" {
					withAudit(b, cfg, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: "+c.level+"}]",
						sink.LogOptions{Path: "/dev/null", Options: sink.Options{Mode: sink.Blocking}})
				}
			})
			ask := func(method, path, body string) int {
				r := httptest.NewRequest(method, path, strings.NewReader(body))
				r.Header.Set("Test-User", "admin")
				w := httptest.NewRecorder()
				server.ServeHTTP(w, r)
				return w.Code
			}
			if code := ask(http.MethodPost, "/api/v1/namespaces/default/configmaps",
				`{"metadata":{"name":"a"},"data":{"k":"v"}}`); code != http.StatusCreated {
				b.Fatal(code)
			}
			b.ReportAllocs()
			for b.Loop() {
				if code := ask(http.MethodGet, "/api/v1/namespaces/default/configmaps/a", ""); code != http.StatusOK {
					b.Fatal(code)
				}
			}
		})
	}
}
