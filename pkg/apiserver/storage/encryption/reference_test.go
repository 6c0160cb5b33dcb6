package encryption_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bonsai/pkg/apiserver/realtest"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/encryption/kmstest"
	"bonsai/pkg/apiserver/storage/etcd"
	"bonsai/pkg/apiserver/storage/etcdtest"
)

var record = flag.Bool("record", false, "write testdata/samples.json from the real kube-apiserver of $REFERENCE_KUBE_APISERVER")

// samplesFile has values as the real kube-apiserver v1.36.3 stored them.
const samplesFile = "testdata/samples.json"

// sample is one stored value.
type sample struct {
	Key    string `json:"key"`
	Stored []byte `json:"stored"`
}

// reference is what the real server is started with: a resource for each provider.
func reference(p *kmstest.Plugin) string {
	return document(
		rule("configmaps", keyed("aesgcm", "gcm", 32, 1), "identity: {}"),
		rule("limitranges", keyed("aescbc", "cbc", 32, 2), "identity: {}"),
		rule("resourcequotas", keyed("secretbox", "box", 32, 3), "identity: {}"),
		rule("secrets", fmt.Sprintf("kms: {apiVersion: v2, name: test, endpoint: %q}", p.Endpoint), "identity: {}"))
}

// objects are the objects that the real server is asked to create, by their resource.
var objects = map[string]string{
	"configmaps":     `{"metadata": {"name": "theirs"}, "data": {"a": "plain text"}}`,
	"limitranges":    `{"metadata": {"name": "theirs", "labels": {"a": "plaintext"}}, "spec": {"limits": []}}`,
	"resourcequotas": `{"metadata": {"name": "theirs", "labels": {"a": "plaintext"}}, "spec": {}}`,
	"secrets":        `{"metadata": {"name": "theirs"}, "stringData": {"a": "plain text"}}`,
}

// TestSamples: what the real kube-apiserver stored is opened, and belongs to its key.
func TestSamples(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(samplesFile)
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("SKIPPED: there are no values of Kubernetes' own kube-apiserver; TestReference records them (-args -record)")
	}
	if err != nil {
		t.Fatal(err)
	}
	var samples []sample
	if err := json.Unmarshal(text, &samples); err != nil {
		t.Fatal(err)
	}
	s := start(t, reference(kmstest.New(t, "a").Start(t)))
	for _, one := range samples {
		got := s.open(t.Context(), one.Key, one.Stored)
		if !strings.HasPrefix(got, "k8s\x00") || !strings.Contains(got, "plain") {
			t.Errorf("%s: %q", one.Key, got)
		}
	}
	if len(samples) != len(objects) {
		t.Errorf("%d samples, want %d", len(samples), len(objects))
	}
}

// TestReference: the real kube-apiserver reads what is stored here, and the other way round.
func TestReference(t *testing.T) {
	t.Parallel()
	if realtest.Binary() == "" {
		t.Skip("SKIPPED: Kubernetes' own kube-apiserver was NOT tried on encrypted values (REFERENCE_KUBE_APISERVER names none)")
	}
	store := etcdtest.Start(t)
	plugin := kmstest.New(t, "a").Start(t)
	file := filepath.Join(t.TempDir(), "encryption.yaml")
	write(t, file, reference(plugin))
	real := startReal(t, store.Endpoint, file)
	ours := start(t, reference(plugin))
	plain := newStore(t, store, nil)
	encrypted := newStore(t, store, ours.Transformer)
	var samples []sample
	for resource, object := range objects {
		real.request(t, http.MethodPost, resource, object)
		key := "/registry/" + resource + "/default/theirs"
		item, err := plain.Get(t.Context(), key, 0)
		if err != nil {
			t.Fatal(err)
		}
		samples = append(samples, sample{key, item.Value()})
		value := ours.open(t.Context(), key, item.Value())
		if !strings.HasPrefix(value, "k8s\x00") || !strings.Contains(value, "plain") {
			t.Errorf("%s of the real server: %q", key, value)
		}
		mine := strings.ReplaceAll(value, "theirs", "ournew")
		if _, err := encrypted.Create(t.Context(), "/registry/"+resource+"/default/ournew",
			storage.Draft{Value: []byte(mine)}); err != nil {
			t.Fatal(err)
		}
		stored, err := plain.Get(t.Context(), "/registry/"+resource+"/default/ournew", 0)
		if err != nil || !bytes.HasPrefix(stored.Value(), []byte("k8s:enc:")) {
			t.Errorf("%s: stored %.20q, %v", resource, stored.Value(), err)
		}
		answer := real.request(t, http.MethodGet, resource+"/ournew", "")
		if !strings.Contains(answer, `"ournew"`) || !strings.Contains(answer, `"a":`) {
			t.Errorf("the real server answers %s", answer)
		}
	}
	if *record {
		text, err := json.MarshalIndent(samples, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(samplesFile), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(samplesFile, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func newStore(t *testing.T, server *etcdtest.Server, transform func(string) storage.Transformer) *etcd.Store {
	t.Helper()
	s, err := etcd.New(t.Context(), etcd.Config{Endpoints: []string{server.Endpoint}, Transform: transform})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// realServer is Kubernetes' own kube-apiserver.
type realServer struct {
	url    string
	client *http.Client
}

const realToken = "reference"

func startReal(t *testing.T, etcdURL, file string) *realServer {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // on loopback, in a test
	t.Cleanup(transport.CloseIdleConnections)
	return &realServer{client: &http.Client{Transport: transport}, url: realtest.Start(t, realtest.Config{Etcd: etcdURL,
		Tokens: realToken + `,admin,admin,"system:masters"` + "\n", Token: realToken,
		Flags: []string{"--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount",
			"--encryption-provider-config=" + file}})}
}

func (s *realServer) do(ctx context.Context, method, path, body string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Authorization", "Bearer "+realToken)
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// request asks for something in the namespace default that must work.
func (s *realServer) request(t *testing.T, method, path, body string) string {
	t.Helper()
	code, text, err := s.do(t.Context(), method, "/api/v1/namespaces/default/"+path, body)
	if err != nil || code >= 300 {
		t.Fatalf("%s %s: %d %s %v", method, path, code, text, err)
	}
	return text
}
