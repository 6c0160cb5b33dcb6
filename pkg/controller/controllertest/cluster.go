// Package controllertest starts a real etcd and a real API server, so that controllers are tested against what they
// will meet. The binaries are bin/etcd and bin/kube-apiserver of the repository, or what BONSAI_TEST_ETCD and
// BONSAI_TEST_APISERVER name. Without them the test says that it skips.
package controllertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"bonsai/api/scheme"
	"bonsai/pkg/apiclient"
)

// Cluster is a running API server without any node.
type Cluster struct {
	// Admin may do everything; Manager is the identity of kube-controller-manager.
	Admin, Manager *rest.Config
	// Kubeconfig is a file with the identity of kube-controller-manager, SchedulerKubeconfig one with that of
	// kube-scheduler.
	Kubeconfig, SchedulerKubeconfig string
	// KeyFile holds the key that signs service account tokens. CAFile and CAKeyFile are the authority of client
	// certificates.
	KeyFile, CAFile, CAKeyFile string
}

// Start brings a cluster up for the time of the test.
func Start(t testing.TB) *Cluster {
	t.Helper()
	etcd, api := binary(t, "BONSAI_TEST_ETCD", "etcd"), binary(t, "BONSAI_TEST_APISERVER", "kube-apiserver")
	dir := t.TempDir()
	key := filepath.Join(dir, "sa.key")
	writeKey(t, key)
	ca, caKey := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")
	writeCA(t, ca, caKey)
	tokens := filepath.Join(dir, "tokens.csv")
	write(t, tokens, "admin,admin,admin,\"system:masters\"\nmanager,system:kube-controller-manager,manager\nscheduler,system:kube-scheduler,scheduler\n")
	client, peer, port := freePort(t), freePort(t), freePort(t)
	etcdURL, peerURL, host := fmt.Sprintf("http://127.0.0.1:%d", client), fmt.Sprintf("http://127.0.0.1:%d", peer),
		fmt.Sprintf("https://127.0.0.1:%d", port)
	spawn(t, dir, etcd, "--data-dir", filepath.Join(dir, "etcd"), "--listen-client-urls", etcdURL,
		"--advertise-client-urls", etcdURL,
		"--listen-peer-urls", peerURL, "--initial-advertise-peer-urls", peerURL, "--initial-cluster",
		"default="+peerURL, "--unsafe-no-fsync", "--log-level", "error")
	awaitOK(t, http.DefaultClient, etcdURL+"/health")
	spawn(t, dir, api, "--etcd-servers="+etcdURL, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--cert-dir="+filepath.Join(dir, "certs"),
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+key,
		"--service-account-signing-key-file="+key,
		"--token-auth-file="+tokens, "--client-ca-file="+ca, "--enable-bootstrap-token-auth",
		"--authorization-mode=Node,RBAC", "--service-cluster-ip-range=10.96.0.0/16",
		"--disable-admission-plugins=ServiceAccount")
	c := &Cluster{Admin: config(host, "admin"), Manager: config(host, "manager"), KeyFile: key, CAFile: ca,
		CAKeyFile:  caKey,
		Kubeconfig: filepath.Join(dir, "kubeconfig"), SchedulerKubeconfig: filepath.Join(dir, "scheduler.kubeconfig")}
	hc, err := rest.HTTPClientFor(c.Admin)
	if err != nil {
		t.Fatal(err)
	}
	awaitOK(t, hc, host+"/readyz")
	writeKubeconfig(t, c.Kubeconfig, host, "manager")
	writeKubeconfig(t, c.SchedulerKubeconfig, host, "scheduler")
	return c
}

func writeKubeconfig(t testing.TB, path, host, token string) {
	t.Helper()
	k := clientcmdapi.NewConfig()
	k.Clusters["c"] = &clientcmdapi.Cluster{Server: host, InsecureSkipTLSVerify: true}
	k.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token}
	k.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	k.CurrentContext = "c"
	if err := clientcmd.WriteToFile(*k, path); err != nil {
		t.Fatal(err)
	}
}

// Client returns a client with the rights of an administrator.
func (c *Cluster) Client(t testing.TB) *apiclient.Client {
	t.Helper()
	client, err := apiclient.New(c.Admin, scheme.New())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// Eventually waits until f returns "", and fails with what it last said after half a minute.
func Eventually(t testing.TB, what string, f func() string) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	last := f()
	for last != "" {
		select {
		case <-deadline.C:
			t.Fatalf("waited in vain for %s: %s", what, last)
		case <-tick.C:
			last = f()
		}
	}
}

func config(host, token string) *rest.Config {
	return &rest.Config{Host: host, BearerToken: token, QPS: -1, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
}

// binary finds a program by the variable or in bin/ of the repository.
func binary(t testing.TB, variable, name string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		dir, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		for ; dir != "/"; dir = filepath.Dir(dir) {
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
				path = filepath.Join(dir, "bin", name)
				break
			}
		}
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("SKIPPED: no %s at %q; build it or set %s", name, path, variable)
	}
	return path
}

// spawn runs a program until the test ends; it dies with the test process too.
func spawn(t testing.TB, dir, path string, args ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(dir, filepath.Base(path)+".log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting %s: %v", path, err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		log.Close()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("end of %s:\n%s", log.Name(), text[max(0, len(text)-2000):])
		}
	})
}

func awaitOK(t testing.TB, c *http.Client, url string) {
	t.Helper()
	Eventually(t, url, func() string {
		res, err := c.Get(url)
		if err != nil {
			return err.Error()
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return res.Status
		}
		return ""
	})
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func writeKey(t testing.TB, path string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, string(pem.EncodeToMemory(
		&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})))
}

// writeCA makes an authority.
func writeCA(t testing.TB, cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write(t, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})))
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
