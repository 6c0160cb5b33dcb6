package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const shopHost = "shop.example.com"

// shop is two Services, each of which answers with its name, and an Ingress that leads to them by path, with a
// certificate from a Secret. It names no class.
const shop = `
apiVersion: v1
kind: ConfigMap
metadata: {name: pages}
data: {front: front, cart: cart}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: front}
spec:
  selector:
    matchLabels: {shop: front}
  template:
    metadata:
      labels: {shop: front}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: httpd
        image: localhost/busybox:1.0
        args: [httpd, -f, -p, "8080", -h, /pages]
        readinessProbe:
          periodSeconds: 1
          httpGet: {port: 8080, path: /index.html}
        volumeMounts:
        - {name: pages, mountPath: /pages}
      volumes:
      - name: pages
        configMap:
          name: pages
          items: [{key: front, path: index.html}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: cart}
spec:
  selector:
    matchLabels: {shop: cart}
  template:
    metadata:
      labels: {shop: cart}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: httpd
        image: localhost/busybox:1.0
        args: [httpd, -f, -p, "8080", -h, /pages]
        readinessProbe:
          periodSeconds: 1
          httpGet: {port: 8080, path: /cart/index.html}
        volumeMounts:
        - {name: pages, mountPath: /pages}
      volumes:
      - name: pages
        configMap:
          name: pages
          items: [{key: cart, path: cart/index.html}]
---
apiVersion: v1
kind: Service
metadata: {name: front}
spec:
  selector: {shop: front}
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Service
metadata: {name: cart}
spec:
  selector: {shop: cart}
  ports: [{name: http, port: 80, targetPort: 8080}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop}
spec:
  tls:
  - {hosts: [shop.example.com], secretName: shop-tls}
  rules:
  - host: shop.example.com
    http:
      paths:
      - path: /
        pathType: Prefix
        backend: {service: {name: front, port: {number: 80}}}
      - path: /cart
        pathType: Prefix
        backend: {service: {name: cart, port: {name: http}}}
`

// ownCertificate makes a certificate of its own for shopHost, and returns it and the Secret's files with it and its
// key.
func ownCertificate(t *testing.T) (leaf *x509.Certificate, cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: serial, DNSNames: []string{shopHost}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.Add(time.Hour),
		IsCA:     true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	if leaf, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der},
		key: {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return leaf, cert, key
}

// getVia asks the balancer at that address for a URL of the shop, trusting one certificate, and returns the code and
// the body.
func getVia(address, url string, trusted *x509.Certificate) (string, error) {
	roots := x509.NewCertPool()
	if trusted != nil {
		roots.AddCert(trusted)
	}
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots},
		DialContext: func(ctx context.Context, network, to string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(to)
			if err != nil {
				return nil, err
			}
			return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(address, port))
		}}
	resp, err := (&http.Client{Transport: transport, Timeout: 5 * time.Second}).Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	return fmt.Sprintf("%d %s", resp.StatusCode, bytes.TrimSpace(body)), err
}

// answersVia waits until the balancer answers so.
func answersVia(t *testing.T, address, url string, trusted *x509.Certificate, want string) {
	t.Helper()
	waitFor(t, url+" says "+want, func() bool {
		got, err := getVia(address, url, trusted)
		return err == nil && got == want
	})
}

// TestIngress: the add-on Traefik answers an Ingress: paths lead to their Services, plainly and with the certificate of
// the Secret, the status tells the address, which the machine reaches, and what changes later, a certificate,
// endpoints, the Ingress itself, is answered by.
func TestIngress(t *testing.T) {
	isLong(t)
	t.Parallel()
	k := newNamespace(t, "kubectl", "ingress")
	first, cert, key := ownCertificate(t)
	k.run("create", "secret", "tls", "shop-tls", "--cert="+cert, "--key="+key)
	k.apply(shop)
	for _, name := range []string{"front", "cart"} {
		k.run("rollout", "status", "deployment/"+name, bound(100))
	}
	const path = "jsonpath={.status.loadBalancer.ingress[0].ip}"
	k.run("wait", "ingress/shop", "--for="+path, bound(100))
	address := k.run("get", "ingress/shop", "-o", path)
	if service := k.run("-n", "kube-system", "get", "service/traefik", "-o", path); address != service {
		t.Errorf("the Ingress has address %q, its controller's Service %q", address, service)
	}
	if got, want := strings.Fields(k.run("get", "ingress/shop", "--no-headers")),
		[]string{"shop", "traefik", shopHost, address, "80,", "443"}; len(got) < 6 ||
		strings.Join(got[:6], " ") != strings.Join(want, " ") {
		t.Errorf("kubectl get ingress: %v, want %v", got, want)
	}

	answersVia(t, address, "http://"+shopHost+"/", nil, "200 front")
	answersVia(t, address, "http://"+shopHost+"/cart/", nil, "200 cart")
	answersVia(t, address, "http://other.example.com/", nil, "404 404 page not found")
	answersVia(t, address, "https://"+shopHost+"/cart/", first, "200 cart")

	second, cert, key := ownCertificate(t)
	if got, err := getVia(address, "https://"+shopHost+"/", second); err == nil {
		t.Errorf("a certificate that no Secret has yet is served: %q", got)
	}
	k.apply(k.run("create", "secret", "tls", "shop-tls", "--cert="+cert, "--key="+key, "--dry-run=client", "-o",
		"yaml"))
	answersVia(t, address, "https://"+shopHost+"/", second, "200 front")

	k.run("scale", "deployment/cart", "--replicas=0")
	answersVia(t, address, "http://"+shopHost+"/cart/", nil, "503 no available server")
	k.run("delete", "ingress/shop")
	answersVia(t, address, "http://"+shopHost+"/", nil, "404 404 page not found")
}
