// Package konnectivity has the API server reach its cluster through the proxies of konnectivity: a real server on a
// socket, and a real agent.
package konnectivity

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// TestProxies: logs, exec, a webhook in the cluster and an aggregated API server work through konnectivity, by gRPC and
// by CONNECT. Without an agent they fail, and say why.
func TestProxies(t *testing.T) {
	t.Parallel()
	bin, err := filepath.Abs("../../../bin")
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"etcd", "kube-apiserver", "kubectl"} {
		if _, err := os.Stat(filepath.Join(bin, program)); err != nil {
			t.Skipf("SKIPPED: no %s; run `make tools components`", program)
		}
	}
	programs := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", programs,
		"sigs.k8s.io/apiserver-network-proxy/cmd/server", "sigs.k8s.io/apiserver-network-proxy/cmd/agent")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build konnectivity: %v\n%s", err, out)
	}
	for mode, protocol := range map[string]string{"grpc": "GRPC", "http-connect": "HTTPConnect"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, bin)
			k := &konnectivity{programs: programs, dir: t.TempDir(), mode: mode}
			k.start(t)
			c.start(t, k.configuration(t, protocol))
			c.create(t)
			c.works(t)
			k.endAgent()
			c.fails(t, k.socket())
			counted := `apiserver_egress_dialer_dial_start_total{protocol="` + strings.ReplaceAll(mode, "-", "_") +
				`",transport="uds"}`
			if !strings.Contains(c.get(t, "/metrics"), counted) {
				t.Errorf("/metrics has no %s", counted)
			}
		})
	}
}

// konnectivity is a proxy server with one agent.
type konnectivity struct {
	programs, dir, mode string
	agent               *exec.Cmd
}

func (k *konnectivity) socket() string { return filepath.Join(k.dir, "server.sock") }

// start starts the server and the agent, which know each other by certificates, and waits until they are connected.
func (k *konnectivity) start(t *testing.T) {
	cert, key := newCertificate(t).files(t, k.dir)
	port, health := freePort(t), freePort(t)
	run(t, filepath.Join(k.programs, "server"), "--mode="+k.mode, "--uds-name="+k.socket(), "--server-port=0",
		"--agent-bind-address=127.0.0.1", "--agent-port="+port, "--admin-port="+freePort(t),
		"--health-bind-address=127.0.0.1", "--health-port="+health,
		"--cluster-cert="+cert, "--cluster-key="+key, "--cluster-ca-cert="+cert)
	k.agent = run(t, filepath.Join(k.programs, "agent"), "--proxy-server-host=127.0.0.1", "--proxy-server-port="+port,
		"--ca-cert="+cert, "--agent-cert="+cert, "--agent-key="+key, "--admin-bind-address=127.0.0.1",
		"--admin-server-port="+freePort(t), "--health-server-host=127.0.0.1", "--health-server-port="+freePort(t),
		"--sync-interval=100ms", "--probe-interval=100ms")
	eventually(t, "the agent is connected", func() error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+health+"/readyz", nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if body, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", answer.Status, body)
		}
		return nil
	})
}

// endAgent kills the agent.
func (k *konnectivity) endAgent() {
	_ = k.agent.Process.Kill()
	_ = k.agent.Wait()
}

// configuration is the API server's file.
func (k *konnectivity) configuration(t *testing.T, protocol string) string {
	path := filepath.Join(k.dir, "egress.yaml")
	text := "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n" +
		"- name: cluster\n  connection:\n    proxyProtocol: " + protocol + "\n    transport: {uds: {udsName: " +
		k.socket() + "}}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// run starts a program, which ends with the test.
func run(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(program, args...)
	if testing.Verbose() {
		c.Stdout, c.Stderr = os.Stderr, os.Stderr
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c
}

// freePort returns a port on loopback below those that konnectivity refuses as ephemeral.
func freePort(t *testing.T) string {
	t.Helper()
	for range 1000 {
		port := strconv.Itoa(20000 + rand.IntN(12000))
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return ""
}

// cluster is an API server with a node, which the test plays.
type cluster struct {
	bin, host  string // host is the machine's address
	kubeconfig string
	env        *envtest.Environment
	client     *kubernetes.Clientset
	own        *certificate
	// ports of the kubelet, the webhook and the aggregated server
	kubelet, hook, aggregated int
}

func newCluster(t *testing.T, bin string) *cluster {
	c := &cluster{bin: bin, host: address(t), own: newCertificate(t)}
	c.kubelet = c.serve(t, kubelet)
	c.hook, c.aggregated = c.serve(t, hook), c.serve(t, aggregated)
	return c
}

// address is one of the machine that is not its loopback's, to which nothing of a cluster may lead.
func address(t *testing.T) string {
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	t.Skip("SKIPPED: this machine has no address but its loopback's")
	return ""
}

// serve serves TLS at the machine's address, and returns the port.
func (c *cluster) serve(t *testing.T, h http.HandlerFunc) int {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(c.host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	s.Listener.Close()
	s.Listener, s.TLS = l, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{c.own.pair}}
	s.StartTLS()
	t.Cleanup(s.CloseClientConnections)
	return l.Addr().(*net.TCPAddr).Port
}

// kubelet answers logs and exec.
func kubelet(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/containerLogs/") {
		fmt.Fprintln(w, "a line of the log")
		return
	}
	if _, err := httpstream.Handshake(r, w, []string{"v4.channel.k8s.io"}); err != nil {
		return
	}
	streams := make(chan httpstream.Stream, 10)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		streams <- s
		return nil
	})
	if conn == nil {
		return
	}
	defer conn.Close()
	byType := map[string]httpstream.Stream{}
	for byType["error"] == nil || byType["stdout"] == nil || byType["stderr"] == nil {
		select {
		case s := <-streams:
			byType[s.Headers().Get("streamType")] = s
		case <-conn.CloseChan():
			return
		}
	}
	fmt.Fprintln(byType["stdout"], "said by the command")
	fmt.Fprint(byType["error"], `{"metadata":{},"status":"Success"}`)
	for _, s := range byType {
		_ = s.Close()
	}
	<-conn.CloseChan()
}

// hook refuses everything.
func hook(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID,
		Result: &metav1.Status{Message: "the webhook in the cluster says no"}}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(&review)
}

// aggregated serves a resource.
func aggregated(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/apis/things.example.com/v1":
		fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"things.example.com/v1","resources":[{"name":"things","singularName":"thing","namespaced":false,"kind":"Thing","verbs":["list"]}]}`)
	case "/apis/things.example.com/v1/things":
		fmt.Fprint(w, `{"kind":"ThingList","apiVersion":"things.example.com/v1","items":[{"metadata":{"name":"a-thing"}}]}`)
	default:
		http.NotFound(w, r)
	}
}

// start starts the API server.
func (c *cluster) start(t *testing.T, egress string) {
	c.env = &envtest.Environment{BinaryAssetsDirectory: c.bin, AttachControlPlaneOutput: testing.Verbose()}
	c.env.ControlPlane.GetAPIServer().Configure().Set("egress-selector-config-file", egress)
	config, err := c.env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.env.Stop(); err != nil {
			t.Error(err)
		}
	})
	if c.client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	c.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(c.kubeconfig, c.env.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
}

// create makes the node, a pod on it, the webhook and the APIService. The node has the machine's name: servers on the
// machine are then those of a node.
func (c *cluster) create(t *testing.T) {
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	name = strings.ToLower(name)
	text := strings.NewReplacer("NODE", name, "HOST", c.host, "HOOK", strconv.Itoa(c.hook), "AGGREGATED",
		strconv.Itoa(c.aggregated), "BUNDLE", c.own.bundle()).Replace(objects)
	create := exec.CommandContext(t.Context(), filepath.Join(c.bin, "kubectl"), "--kubeconfig", c.kubeconfig,
		"create", "-f", "-")
	create.Stdin = strings.NewReader(text)
	if out, err := create.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	status := fmt.Sprintf(`{"status":{"addresses":[{"type":"InternalIP","address":%q}],`+
		`"daemonEndpoints":{"kubeletEndpoint":{"Port":%d}}}}`, c.host, c.kubelet)
	out, err := c.kubectl(t, "patch", "node", name, "--subresource=status", "--type=merge", "-p", status)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func (c *cluster) kubectl(t *testing.T, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out bytes.Buffer
	command := exec.CommandContext(ctx, filepath.Join(c.bin, "kubectl"),
		append([]string{"--kubeconfig", c.kubeconfig}, args...)...)
	command.Stdout, command.Stderr = &out, &out
	err := command.Run()
	return out.String(), err
}

func (c *cluster) get(t *testing.T, path string) string {
	t.Helper()
	text, err := c.client.RESTClient().Get().AbsPath(path).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// try is something that goes through the proxy: the arguments of kubectl, and what it prints when that works.
type try struct {
	name  string
	args  []string
	wants string
}

func tries() []try {
	return []try{
		{"logs", []string{"logs", "p"}, "a line of the log"},
		{"exec", []string{"exec", "p", "--", "x"}, "said by the command"},
		{"webhook", []string{"create", "configmap", "x"}, "the webhook in the cluster says no"},
		{"aggregated API", []string{"get", "--raw", "/apis/things.example.com/v1/things"}, "a-thing"},
	}
}

// works wants everything to work, soon: webhooks and APIServices take a moment.
func (c *cluster) works(t *testing.T) {
	for _, one := range tries() {
		eventually(t, one.name, func() error {
			if out, err := c.kubectl(t, one.args...); !strings.Contains(out, one.wants) {
				return fmt.Errorf("%s, %v", out, err)
			}
			return nil
		})
	}
}

// fails wants everything to fail, and kubectl to name the proxy; an aggregated API server is just unavailable.
func (c *cluster) fails(t *testing.T, socket string) {
	for _, one := range tries() {
		where, reason := "proxy error from "+socket+" while dialing "+c.host, "No agent available"
		if one.name == "aggregated API" {
			where, reason = "", "the server is currently unable to handle the request"
		}
		eventually(t, one.name+" without an agent", func() error {
			out, err := c.kubectl(t, one.args...)
			if err == nil || !strings.Contains(out, reason) || !strings.Contains(out, where) {
				return fmt.Errorf("%s, %v", out, err)
			}
			return nil
		})
	}
	eventually(t, "the APIService names the proxy", func() error {
		out := c.get(t, "/apis/apiregistration.k8s.io/v1/apiservices/v1.things.example.com")
		if !strings.Contains(out, "proxy error from "+socket) {
			return errors.New(out)
		}
		return nil
	})
}

// eventually waits until do works.
func eventually(t *testing.T, what string, do func() error) {
	t.Helper()
	var last error
	if err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, 90*time.Second, true,
		func(context.Context) (bool, error) {
			last = do()
			return last == nil, nil
		}); err != nil {
		t.Fatalf("%s: %v", what, last)
	}
}
