package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestEtcdContent reads etcd with etcd's own client: the keys are Kubernetes', the values its protobuf, and
// Secrets are encrypted.
func TestEtcdContent(t *testing.T) {
	t.Parallel()
	k := newNamespace(t, "kubectl", "in-etcd")
	k.run("create", "configmap", "settings", "--from-literal=colour=green")
	k.run("create", "secret", "generic", "hidden", "--from-literal=colour=greenish")
	pki := func(name string) string { return filepath.Join(cluster.data, "pki", name) }
	pair, err := tls.LoadX509KeyPair(pki("apiserver-etcd-client.crt"), pki("apiserver-etcd-client.key"))
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(pki("etcd-ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client, err := clientv3.New(
		clientv3.Config{Endpoints: []string{"https://127.0.0.1:2379"}, DialTimeout: 10 * time.Second,
			TLS: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	defer cancel()
	const secret = "/registry/secrets/in-etcd/hidden"
	waitFor(t, secret+" is encrypted in etcd", func() bool {
		resp, err := client.Get(ctx, secret)
		return err == nil && len(resp.Kvs) == 1 &&
			bytes.HasPrefix(resp.Kvs[0].Value, []byte("k8s:enc:aesgcm:v1:key-")) &&
			!bytes.Contains(resp.Kvs[0].Value, []byte("greenish"))
	})
	for _, key := range []string{"/registry/namespaces/in-etcd", "/registry/minions/n1",
		"/registry/services/specs/default/kubernetes",
		"/registry/deployments/kube-system/coredns", "/registry/clusterroles/cluster-admin",
		"/registry/leases/kube-node-lease/n1",
		"/registry/serviceaccounts/in-etcd/default", "/registry/configmaps/in-etcd/settings"} {
		var value []byte
		waitFor(t, key+" is in etcd", func() bool {
			resp, err := client.Get(ctx, key)
			if err != nil || len(resp.Kvs) != 1 {
				return false
			}
			value = resp.Kvs[0].Value
			return true
		})
		if !bytes.HasPrefix(value, []byte("k8s\x00")) {
			t.Errorf("%s: value starts with %q", key, value[:min(8, len(value))])
			continue
		}
		var envelope runtime.Unknown
		if err := envelope.Unmarshal(value[4:]); err != nil || envelope.Kind == "" || envelope.APIVersion == "" {
			t.Errorf("%s: envelope %+v, %v", key, envelope.TypeMeta, err)
		}
		if key != "/registry/configmaps/in-etcd/settings" {
			continue
		}
		var settings corev1.ConfigMap
		if err := settings.Unmarshal(envelope.Raw); err != nil || settings.Data["colour"] != "green" ||
			settings.UID == "" || settings.ResourceVersion != "" {
			t.Errorf("%s: %v, %v", key, settings, err)
		}
	}
}
