// Package traefik has an Ingress answered by Traefik, unchanged and installed as users do.
package traefik

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
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	host     = "shop.example.com"
	patience = 2 * time.Minute
	// The namespaces of the shop and of the controller.
	shop, traefik = "shop", "traefik"
)

// kubectl runs in a namespace, reading in, and returns what it prints.
func kubectl(t *testing.T, namespace string, in []byte, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "../../../bin/kubectl", append([]string{"-n", namespace}, args...)...)
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// certificate makes a certificate of its own for the host, and returns it and the Secret's files with it and its key.
func certificate(t *testing.T) (leaf *x509.Certificate, cert, key string) {
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
	template := &x509.Certificate{SerialNumber: serial, DNSNames: []string{host}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true}
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
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return leaf, cert, key
}

// get asks the balancer at that address for a URL of the shop, trusting one certificate, and returns the code and the body.
func get(address, url string, trusted *x509.Certificate) (string, error) {
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

// answers asks until the balancer answers so.
func answers(t *testing.T, address, url string, trusted *x509.Certificate, want string) {
	t.Helper()
	end, again := time.After(patience), time.NewTicker(100*time.Millisecond)
	defer again.Stop()
	for {
		got, err := get(address, url, trusted)
		if err == nil && got == want {
			return
		}
		select {
		case <-again.C:
		case <-end:
			t.Fatalf("%s: %q, %v, want %q", url, got, err, want)
		}
	}
}

// TestIngress installs Traefik and a shop behind an Ingress: paths lead to their Services, plainly and with the certificate of the Secret, the
// status tells the address, and what changes later, a certificate, a rule, the Ingress itself, is answered by.
func TestIngress(t *testing.T) {
	if os.Getenv("USE_EXISTING_CLUSTER") != "true" {
		t.Skip("SKIPPED: no cluster is given; run `make ecosystem`")
	}
	t.Cleanup(func() {
		kubectl(t, shop, nil, "delete", "--ignore-not-found", "--wait=false", "clusterrole/traefik", "clusterrolebinding/traefik", "ingressclass/traefik")
		kubectl(t, shop, nil, "delete", "--ignore-not-found", "--timeout=60s", "namespace/"+traefik, "namespace/"+shop)
	})
	kubectl(t, shop, nil, "create", "namespace", traefik)
	kubectl(t, shop, nil, "create", "namespace", shop)
	kubectl(t, traefik, nil, "apply", "-f", "testdata/traefik.yaml")
	first, cert, key := certificate(t)
	kubectl(t, shop, nil, "create", "secret", "tls", "shop-tls", "--cert="+cert, "--key="+key)
	kubectl(t, shop, nil, "apply", "-f", "testdata/shop.yaml")
	kubectl(t, traefik, nil, "rollout", "status", "deployment/traefik", "--timeout=100s")
	for _, name := range []string{"front", "cart"} {
		kubectl(t, shop, nil, "rollout", "status", "deployment/"+name, "--timeout=100s")
	}

	const path = "jsonpath={.status.loadBalancer.ingress[0].ip}"
	kubectl(t, shop, nil, "wait", "ingress/shop", "--for="+path, "--timeout=100s")
	address := kubectl(t, shop, nil, "get", "ingress/shop", "-o", path)
	if service := kubectl(t, traefik, nil, "get", "service/traefik", "-o", path); address != service {
		t.Errorf("the Ingress has address %q, its controller's Service %q", address, service)
	}
	if got, want := strings.Fields(kubectl(t, shop, nil, "get", "ingress/shop", "--no-headers")), []string{"shop", "traefik", host, address, "80,", "443"}; len(got) < 6 || strings.Join(got[:6], " ") != strings.Join(want, " ") {
		t.Errorf("kubectl get ingress: %v, want %v", got, want)
	}

	answers(t, address, "http://"+host+"/", nil, "200 front")
	answers(t, address, "http://"+host+"/cart/", nil, "200 cart")
	answers(t, address, "http://other.example.com/", nil, "404 404 page not found")
	answers(t, address, "https://"+host+"/cart/", first, "200 cart")

	second, cert, key := certificate(t)
	if got, err := get(address, "https://"+host+"/", second); err == nil {
		t.Errorf("a certificate that no Secret has yet is served: %q", got)
	}
	kubectl(t, shop, []byte(kubectl(t, shop, nil, "create", "secret", "tls", "shop-tls", "--cert="+cert, "--key="+key, "--dry-run=client", "-o", "yaml")), "replace", "-f", "-")
	answers(t, address, "https://"+host+"/", second, "200 front")

	kubectl(t, shop, nil, "scale", "deployment/cart", "--replicas=0")
	answers(t, address, "http://"+host+"/cart/", nil, "503 no available server")
	kubectl(t, shop, nil, "delete", "ingress/shop")
	answers(t, address, "http://"+host+"/", nil, "404 404 page not found")
}
