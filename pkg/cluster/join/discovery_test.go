package join

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"bonsai/api/bootstraptoken"
	"bonsai/pkg/cluster/pki"
	"bonsai/pkg/cluster/plan"
)

// said is a cluster that says what a test wants; its certificate is of its own authority.
type said struct {
	*httptest.Server
	authority []byte
	pin       string
	info      map[string]string
}

func saying(t *testing.T, change func(*said)) *said {
	t.Helper()
	s := &said{info: map[string]string{}}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := map[string]map[string]string{"/api/v1/namespaces/kube-public/configmaps/cluster-info": s.info}
		if r.Header.Get("Authorization") == "Bearer abcdef.0123456789abcdef" {
			answer["/api/v1/namespaces/kube-system/configmaps/bonsai-node-config"] = map[string]string{
				"config.json": `{"NodeSubnet":"10.77.0.0/24","PodSubnet":"10.244.0.0/16","ServiceSubnet":"10.96.0.0/16","FeatureGates":{"MemoryQoS":true}}`}
		}
		data, ok := answer[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		json.NewEncoder(w).Encode(corev1.ConfigMap{Data: data}) // whoever does not read it fails
	}))
	t.Cleanup(s.Close)
	s.authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	s.pin = publicKeyHash(s.Certificate().RawSubjectPublicKeyInfo)
	s.info["kubeconfig"] = s.config(s.URL, s.authority)
	s.sign()
	if change != nil {
		change(s)
	}
	return s
}

func (s *said) sign() {
	s.info["jws-kubeconfig-abcdef"] = joiner.Sign(s.info["kubeconfig"])
}

func (s *said) config(server string, authority []byte) string {
	k := clientcmdapi.NewConfig()
	k.Clusters[""] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: authority}
	text, err := clientcmd.Write(*k)
	if err != nil {
		panic(err)
	}
	return string(text)
}

var joiner = bootstraptoken.Token{ID: "abcdef", Secret: "0123456789abcdef"}

// TestDiscover: a machine joins only what knows the token, has the authority of the hash, and a certificate of it.
func TestDiscover(t *testing.T) {
	t.Parallel()
	liar := saying(t, func(s *said) { s.info["kubeconfig"] += "\n" })
	dir := t.TempDir()
	if err := pki.Make(plan.Default(dir, ""), time.Now()); err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(plan.Layout(dir).PKI("ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	otherCert, err := pki.ReadCertificate(plan.Layout(dir).PKI("ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*said)
		pin    string
		want   string // in the error; "" is none
	}{
		"good":       {nil, "", ""},
		"not signed": {func(s *said) { delete(s.info, "jws-kubeconfig-abcdef") }, "", "has expired"},
		"signed by another": {func(s *said) {
			s.info["jws-kubeconfig-abcdef"] = bootstraptoken.Token{ID: "abcdef",
				Secret: "0123456789abcdeg"}.Sign(s.info["kubeconfig"])
		}, "", "not its secret"},
		"changed":           {func(s *said) { s.info["kubeconfig"] += "\n" }, "", "not its secret"},
		"another authority": {nil, "sha256:" + strings.Repeat("0", 64), "does not name"},
		"no authority": {func(s *said) {
			s.info["kubeconfig"] = s.config(s.URL, nil)
			s.sign()
		}, "", "authority"},
		"no URL": {func(s *said) {
			s.info["kubeconfig"] = s.config("http://127.0.0.1:1", s.authority)
			s.sign()
		}, "", "https"},
		"something else there": {func(s *said) {
			s.info["kubeconfig"] = s.config(liar.URL, s.authority)
			s.sign()
		}, "", "something else"},
		"a certificate of another": {func(s *said) {
			s.info["kubeconfig"] = s.config(s.URL, other)
			s.sign()
		}, publicKeyHash(otherCert.RawSubjectPublicKeyInfo), "with its authority"},
	} {
		s := saying(t, c.change)
		if c.pin == "" {
			c.pin = s.pin
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Second, errors.New("late"))
		d, err := Request{Options: Options{Server: s.Listener.Addr().String()}, token: joiner,
			pins: []string{c.pin}}.Discover(ctx)
		cancel()
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || d.cluster.Server != s.URL {
			t.Fatalf("%s: %+v, %v", name, d, err)
		}
		facts, _, err := d.facts(t.Context(), joiner)
		if err != nil || facts.PodSubnet.String() != "10.244.0.0/16" || !facts.FeatureGates["MemoryQoS"] {
			t.Errorf("%+v, %v", facts, err)
		}
		if _, _, err := d.facts(t.Context(), bootstraptoken.Token{ID: "abcdef"}); err == nil {
			t.Error("facts were told to who has no token")
		}
	}
}

func TestParsePins(t *testing.T) {
	t.Parallel()
	good := "sha256:" + strings.Repeat("aB", 32)
	if pins, err := parsePins(Options{CAHashes: []string{good}}); err != nil || len(pins) != 1 ||
		pins[0] != strings.ToLower(good) {
		t.Errorf("%v, %v", pins, err)
	}
	if _, err := parsePins(Options{UnsafeSkipCAVerification: true}); err != nil {
		t.Error(err)
	}
	for _, bad := range []Options{{}, {CAHashes: []string{good[:20]}}, {CAHashes: []string{"md5:" + good[7:]}},
		{CAHashes: []string{good, ""}}} {
		if pins, err := parsePins(bad); err == nil {
			t.Errorf("%v: %v", bad, pins)
		}
	}
}
