package e2e

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// api sends plain HTTP requests with the administrator's certificate (or with a token instead).
type api struct {
	t      *testing.T
	server string
	client *http.Client
	token  string
}

func newAPI(t *testing.T, token string) api {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", cluster.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(config.CAData)
	settings := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	if token == "" {
		pair, err := tls.X509KeyPair(config.CertData, config.KeyData)
		if err != nil {
			t.Fatal(err)
		}
		settings.Certificates = []tls.Certificate{pair}
	}
	transport := &http.Transport{TLSClientConfig: settings}
	t.Cleanup(transport.CloseIdleConnections)
	return api{t: t, server: config.Host, client: &http.Client{Transport: transport}, token: token}
}

// do returns the HTTP code and the Status in the answer (or an empty one).
func (a api) do(method, path, contentType string, body []byte) (int, metav1.Status) {
	a.t.Helper()
	req, err := http.NewRequest(method, a.server+path, bytes.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	if a.token != "" {
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	resp, err := a.client.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	var status metav1.Status
	if err := json.Unmarshal(data, &status); err != nil || status.Kind != "Status" {
		return resp.StatusCode, metav1.Status{}
	}
	return resp.StatusCode, status
}

// TestBadInput sends what no server may accept; each gets the code, the reason and the words of Kubernetes, and nothing
// is stored.
func TestBadInput(t *testing.T) {
	t.Parallel()
	k := newNamespace(t, "kubectl", "bad-input")
	const asJSON, asYAML = "application/json", "application/yaml"
	configMaps := "/api/v1/namespaces/bad-input/configmaps"
	pods := "/api/v1/namespaces/bad-input/pods"
	configMap := func(name, more string) []byte {
		return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q}%s}`, name, more)
	}
	for _, c := range []struct {
		name, method, path, contentType string
		body                            []byte
		code                            int
		reason                          metav1.StatusReason
		message                         string
	}{
		{"broken JSON", "POST", configMaps, asJSON, []byte(`{"kind":`), 400, metav1.StatusReasonBadRequest, ""},
		{"broken YAML", "POST", configMaps, asYAML, []byte("a: b: c\n\t- d"), 400, metav1.StatusReasonBadRequest, ""},
		{"empty body", "POST", configMaps, asJSON, nil, 400, metav1.StatusReasonBadRequest, ""},
		{"unknown field, strict", "POST", configMaps + "?fieldValidation=Strict", asJSON, configMap("x", `,"dta":{}`),
			400, metav1.StatusReasonBadRequest, `unknown field "dta"`},
		{"wrong type", "POST", configMaps, asJSON, configMap("x", `,"data":{"a":1}`), 400,
			metav1.StatusReasonBadRequest, "cannot"},
		{"4 MB body", "POST", configMaps, asJSON, configMap("x", `,"data":{"a":"`+strings.Repeat("x", 4<<20)+`"}`), 413,
			metav1.StatusReasonRequestEntityTooLarge, ""},
		{"2 MB of data", "POST", configMaps, asJSON, configMap("x", `,"data":{"a":"`+strings.Repeat("x", 2<<20)+`"}`),
			422, metav1.StatusReasonInvalid, "Too long"},
		{"unknown kind", "POST", configMaps, asJSON,
			[]byte(`{"apiVersion":"v1","kind":"Gadget","metadata":{"name":"x"}}`), 400, metav1.StatusReasonBadRequest,
			"Gadget"},
		{"another kind", "POST", configMaps, asJSON,
			[]byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"}}`), 400, metav1.StatusReasonBadRequest,
			""},
		{"unknown resource", "POST", "/api/v1/namespaces/bad-input/gadgets", asJSON, configMap("x", ""), 404,
			metav1.StatusReasonNotFound, "could not find the requested resource"},
		{"deep nesting", "POST", configMaps, asJSON,
			configMap("x", `,"data":`+strings.Repeat(`{"a":`, 20000)+"1"+strings.Repeat("}", 20000)), 400,
			metav1.StatusReasonBadRequest, ""},
		{"deep YAML", "POST", configMaps, asYAML, []byte(strings.Repeat("[", 20000)), 400,
			metav1.StatusReasonBadRequest, ""},
		{"invalid name", "POST", configMaps, asJSON, configMap("No_Such Name", ""), 422, metav1.StatusReasonInvalid,
			"metadata.name"},
		{"other namespace in the body", "POST", configMaps, asJSON,
			[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"default"}}`), 400,
			metav1.StatusReasonBadRequest, "does not match the namespace"},
		{"no containers", "POST", pods, asJSON,
			[]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{}}`), 422,
			metav1.StatusReasonInvalid, "spec.containers: Required value"},
		{"content type", "POST", configMaps, "text/csv", []byte("a,b"), 415, metav1.StatusReasonUnsupportedMediaType,
			""},
		{"patch type", "PATCH", configMaps + "/kube-root-ca.crt", asJSON, []byte("{}"), 415,
			metav1.StatusReasonUnsupportedMediaType, ""},
		{"broken patch", "PATCH", configMaps + "/kube-root-ca.crt", "application/json-patch+json", []byte(`[{"op":`),
			400, metav1.StatusReasonBadRequest, ""},
		{"patch that does not apply", "PATCH", configMaps + "/kube-root-ca.crt", "application/json-patch+json",
			[]byte(`[{"op":"test","path":"/data/absent","value":"x"}]`), 422, metav1.StatusReasonInvalid, ""},
		{"selector", "GET", pods + "?labelSelector=a%3D%3D%3D", asJSON, nil, 400, metav1.StatusReasonBadRequest, ""},
		{"field selector", "GET", pods + "?fieldSelector=spec.colour%3Dred", asJSON, nil, 400,
			metav1.StatusReasonBadRequest, "field label not supported"},
		{"continue", "GET", pods + "?limit=1&continue=zzz", asJSON, nil, 400, metav1.StatusReasonBadRequest, ""},
		{"method", "PUT", pods, asJSON, nil, 405, metav1.StatusReasonMethodNotAllowed, ""},
		{"missing", "GET", pods + "/absent", asJSON, nil, 404, metav1.StatusReasonNotFound, `pods "absent" not found`},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, status := newAPI(t, "").do(c.method, c.path, c.contentType, c.body)
			if code != c.code || int(status.Code) != c.code {
				t.Errorf("HTTP %d with a Status of %d (%.300s), not %d", code, status.Code, status.Message, c.code)
			}
			if c.reason != "" && status.Reason != c.reason {
				t.Errorf("reason %q, not %q", status.Reason, c.reason)
			}
			if !strings.Contains(status.Message, c.message) {
				t.Errorf("message %q lacks %q", status.Message, c.message)
			}
		})
	}
	if out := k.run("get", "configmaps,pods", "-o", "name"); out != "configmap/kube-root-ca.crt" {
		t.Errorf("something was stored: %s", out)
	}
}

// TestForbidden: who is not known is 401, who may not is 403, and neither stores anything.
func TestForbidden(t *testing.T) {
	t.Parallel()
	k := newNamespace(t, "kubectl", "forbidden")
	for _, token := range []string{"no-such-token", "eyJhbGciOiJub25lIn0.e30."} {
		if code, status := newAPI(t, token).do("GET", "/api/v1/pods", "application/json", nil); code != 401 ||
			status.Reason != metav1.StatusReasonUnauthorized {
			t.Errorf("token %q: HTTP %d %q", token, code, status.Reason)
		}
	}
	k.run("create", "serviceaccount", "nobody")
	token := k.run("create", "token", "nobody", "--duration=10m")
	code, status := newAPI(t, token).do("GET", "/api/v1/namespaces/forbidden/secrets", "application/json", nil)
	want := `secrets is forbidden: User "system:serviceaccount:forbidden:nobody" cannot list resource "secrets" in API group "" in the namespace "forbidden"`
	if code != 403 || !strings.Contains(status.Message, want) {
		t.Errorf("HTTP %d %q", code, status.Message)
	}
	k.run("delete", "serviceaccount", "nobody")
	waitFor(t, "the token dies with its account", func() bool {
		code, _ := newAPI(t, token).do("GET", "/api/v1/namespaces/forbidden/secrets", "application/json", nil)
		return code == 401
	})
}
