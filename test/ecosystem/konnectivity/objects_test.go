package konnectivity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// certificate is everybody's here: it vouches for itself.
type certificate struct {
	pair      tls.Certificate
	cert, key []byte // PEM
}

func newCertificate(t *testing.T) *certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "konnectivity"},
		DNSNames: []string{"hook.default.svc", "things.default.svc"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificate{pair: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:  pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: text})}
}

// bundle is the certificate as a caBundle.
func (c *certificate) bundle() string { return base64.StdEncoding.EncodeToString(c.cert) }

// files writes it into dir.
func (c *certificate) files(t *testing.T, dir string) (cert, key string) {
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, text := range map[string][]byte{cert: c.cert, key: c.key} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// objects are those of the cluster. NODE is the machine's name, HOST its address.
const objects = `
apiVersion: v1
kind: Node
metadata: {name: NODE}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default}
spec: {nodeName: NODE, containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: Service
metadata: {name: hook, namespace: default}
spec: {ports: [{port: 443}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: hook, namespace: default, labels: {kubernetes.io/service-name: hook}}
addressType: IPv4
endpoints: [{addresses: [HOST]}]
ports: [{port: HOOK, name: ""}]
---
apiVersion: v1
kind: Service
metadata: {name: things, namespace: default}
spec: {ports: [{port: 443}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: things, namespace: default, labels: {kubernetes.io/service-name: things}}
addressType: IPv4
endpoints: [{addresses: [HOST]}]
ports: [{port: AGGREGATED, name: ""}]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.things.example.com}
spec:
  group: things.example.com
  version: v1
  groupPriorityMinimum: 100
  versionPriority: 100
  caBundle: BUNDLE
  service: {namespace: default, name: things}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hook}
webhooks:
- name: hook.example.com
  clientConfig: {caBundle: BUNDLE, service: {namespace: default, name: hook}}
  admissionReviewVersions: [v1]
  sideEffects: None
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]
`
