package join

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/cluster/pki"
	"bonsai/pkg/cluster/plan"
)

// TestCertificateKey: what a key has encrypted only that key opens, twice the same differs, and an error never tells a
// key.
func TestCertificateKey(t *testing.T) {
	t.Parallel()
	key, err := NewCertificateKey()
	if err != nil {
		t.Fatal(err)
	}
	read, err := ParseCertificateKey(key.Text())
	if err != nil || string(read) != string(key) {
		t.Fatal(err)
	}
	other, err := NewCertificateKey()
	if err != nil {
		t.Fatal(err)
	}
	first, err := key.encrypt([]byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	second, err := key.encrypt([]byte("secret"))
	if err != nil || string(first) == string(second) {
		t.Errorf("the same twice: %v", err)
	}
	if plain, err := read.decrypt(first); err != nil || string(plain) != "secret" {
		t.Errorf("%q, %v", plain, err)
	}
	changed := append([]byte{}, first...)
	changed[len(changed)-1] ^= 1
	for _, bad := range [][]byte{nil, first[:5], changed} {
		if _, err := key.decrypt(bad); err == nil {
			t.Errorf("%x was opened", bad)
		}
	}
	if _, err := other.decrypt(first); err == nil {
		t.Error("another key opened it")
	}
	for _, bad := range []string{"", "ab", key.Text() + "00", strings.Repeat("x", 64)} {
		if _, err := ParseCertificateKey(bad); err == nil || bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestCheckControlPlane: a control plane needs the key, and a node alone takes none.
func TestCheckControlPlane(t *testing.T) {
	t.Parallel()
	good := Options{Server: "192.0.2.1:6443", Token: joiner.String(), UnsafeSkipCAVerification: true}
	for name, c := range map[string]struct {
		plane bool
		key   string
		ok    bool
	}{
		"a node": {false, "", true}, "a control plane": {true, strings.Repeat("0a", 32), true},
		"no key": {true, "", false}, "a key for a node": {false, strings.Repeat("0a", 32), false},
	} {
		o := good
		o.ControlPlane, o.CertificateKey = c.plane, c.key
		if _, err := o.Check(); (err == nil) != c.ok ||
			err != nil && !strings.Contains(err.Error(), "--certificate-key") ||
			!c.plane && !c.ok && err.Error() != "--certificate-key: needs --control-plane" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAuthorities: a machine takes the authorities only if the key opens them, each is whole, and the cluster's is the
// one that has been proved.
func TestAuthorities(t *testing.T) {
	t.Parallel()
	c := plan.Default(t.TempDir(), "")
	if err := pki.Make(c, time.Now()); err != nil {
		t.Fatal(err)
	}
	key, err := NewCertificateKey()
	if err != nil {
		t.Fatal(err)
	}
	secret := map[string][]byte{}
	for _, name := range shared {
		plain, err := os.ReadFile(c.Layout().PKI(name))
		if err != nil {
			t.Fatal(err)
		}
		if secret[name], err = key.encrypt(plain); err != nil {
			t.Fatal(err)
		}
	}
	ca, err := os.ReadFile(c.Layout().PKI("ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change func(map[string][]byte)
		proved []byte
		status int
		want   string
	}{
		"good":        {nil, ca, 200, ""},
		"no Secret":   {nil, ca, 404, "two hours"},
		"not allowed": {nil, ca, 403, "403"},
		"one is missing": {func(s map[string][]byte) {
			delete(s, "sa.key")
		}, ca, 200, "--certificate-key"},
		"another key's": {func(s map[string][]byte) {
			s["ca.key"] = append([]byte("x"), s["ca.key"]...)
		}, ca, 200, "--certificate-key"},
		"keys are swapped": {func(s map[string][]byte) {
			s["ca.key"] = s["etcd-ca.key"]
		}, ca, 200, "the authority ca"},
		"another authority": {nil, authority(t), 200, "is not the cluster's"},
	} {
		data := map[string][]byte{}
		for k, v := range secret {
			data[k] = v
		}
		if tc.change != nil {
			tc.change(data)
		}
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer "+joiner.String() {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			w.WriteHeader(tc.status)
			json.NewEncoder(w).Encode(corev1.Secret{Data: data}) // whoever does not read it fails
		}))
		d := &Cluster{client: s.Client(),
			cluster: &clientcmdapi.Cluster{Server: s.URL, CertificateAuthorityData: tc.proved}}
		all, err := d.Authorities(t.Context(), Request{token: joiner, key: key})
		s.Close()
		switch {
		case tc.want == "" && (err != nil || string(all["ca.crt"]) != string(ca)):
			t.Errorf("%s: %v", name, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) ||
			strings.Contains(err.Error(), key.Text())):
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReadPeers: control planes are read in the order of their names, and what cannot be read is none.
func TestReadPeers(t *testing.T) {
	t.Parallel()
	got := readPeers(&corev1.ConfigMap{Data: map[string]string{
		nodeConfigKey:          "{}",
		peersPrefix + "m2":     `{"Name":"m2","API":"192.0.2.2:6443","Etcd":"192.0.2.2:2379"}`,
		peersPrefix + "bonsai": `{"Name":"bonsai","API":"192.0.2.1:6443","Etcd":"192.0.2.1:2379"}`,
		peersPrefix + "m3":     `{"Name":"m4","API":"192.0.2.3:6443","Etcd":"192.0.2.3:2379"}`,
		peersPrefix + "m5":     `{"Name":"m5","API":"","Etcd":""}`,
		peersPrefix + "m6":     `what`,
	}})
	if len(got) != 2 || got[0].Name != "bonsai" || got[1].Etcd.String() != "192.0.2.2:2379" {
		t.Errorf("%v", got)
	}
}

// TestRemovePeers: one control plane, or all others, go from the cluster's list, also those that this machine has never
// heard of. The other entries stay, and where there is no list none is made.
func TestRemovePeers(t *testing.T) {
	t.Parallel()
	scheme, err := apiclient.NewScheme(apiclient.Only(corev1.SchemeGroupVersion, &corev1.ConfigMap{}))
	if err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	c := plan.Default("", "")
	own := c.Etcd().Name
	for name, tc := range map[string]struct {
		remove func(context.Context, plan.Config) error
		has    []string
		want   string // written; "" for nothing
	}{
		"one":                 {removePeer("m2"), []string{own, "m2", "m3"}, "bonsai,m3"},
		"one that is no more": {removePeer("m2"), []string{own, "m3"}, ""},
		"one of no list":      {removePeer("m2"), nil, ""},
		"others":              {RemoveOtherPeers, []string{own, "m2", "m3"}, "bonsai"},
		"no others":           {RemoveOtherPeers, []string{own}, ""},
		"others of no list":   {RemoveOtherPeers, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"},
				ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: nodeConfigMap},
				Data:       map[string]string{nodeConfigKey: "{}"}}
			for _, peer := range tc.has {
				m.Data[peersPrefix+peer] = "{}"
			}
			written := ""
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if tc.has == nil && r.Method == http.MethodGet {
					w.WriteHeader(http.StatusNotFound)
					fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
					return
				}
				if r.Method != http.MethodGet {
					body, err := io.ReadAll(r.Body)
					if err != nil {
						t.Error(err)
					}
					got, _, err := decoder.Decode(body, nil, nil)
					sent, ok := got.(*corev1.ConfigMap)
					if err != nil || !ok || sent.Data[nodeConfigKey] != "{}" {
						t.Errorf("%s of %v: %v", r.Method, got, err)
						return
					}
					var names []string
					for _, key := range slices.Sorted(maps.Keys(sent.Data)) {
						if name, is := strings.CutPrefix(key, peersPrefix); is {
							names = append(names, name)
						}
					}
					written = strings.Join(names, ",")
				}
				if err := json.NewEncoder(w).Encode(m); err != nil {
					t.Error(err)
				}
			}))
			t.Cleanup(server.Close)
			c := plan.Default(t.TempDir(), "")
			administer(t, c, server.URL)
			if err := tc.remove(t.Context(), c); err != nil || written != tc.want {
				t.Errorf("wrote %q, not %q: %v", written, tc.want, err)
			}
		})
	}
}

func removePeer(name string) func(context.Context, plan.Config) error {
	return func(ctx context.Context, c plan.Config) error { return RemovePeer(ctx, c, "", name) }
}
