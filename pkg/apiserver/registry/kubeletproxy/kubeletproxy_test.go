package kubeletproxy_test

import (
	"bufio"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/registry/kubeletproxy"
	"bonsai/pkg/apiserver/registry/registrytest"
)

// kubelet answers logs with the request's URI, refuses one container, and echoes upgraded connections.
func kubelet(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Header.Get("Upgrade") != "":
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n%s\n",
			r.RequestURI)
		rw.Flush()
		_, _ = io.Copy(conn, rw)
	case strings.HasSuffix(r.URL.Path, "/init"):
		http.Error(w, `container "init" in pod "p" is waiting to start`, http.StatusBadRequest)
	default:
		fmt.Fprint(w, r.RequestURI)
	}
}

// house is a proxy in front of one node, with pods p (on the node) and free (on none).
func house(t *testing.T, local bool) *kubeletproxy.Proxy {
	t.Helper()
	return houseOf(t, local, kubelet)
}

func houseOf(t *testing.T, local bool, kubelet http.HandlerFunc) *kubeletproxy.Proxy {
	t.Helper()
	return houseAt(t, local, "127.0.0.1", kubelet)
}

// houseAt is a house whose node and pods say that they are at address.
func houseAt(t *testing.T, local bool, address string, kubelet http.HandlerFunc) *kubeletproxy.Proxy {
	t.Helper()
	return houseBy(t, local, address, filepath.Join(t.TempDir(), "ca.crt"), kubelet)
}

// houseBy is houseAt whose kubelet is known by the authority in the file ca, which it writes.
func houseBy(t *testing.T, local bool, address, ca string, kubelet http.HandlerFunc) *kubeletproxy.Proxy {
	t.Helper()
	node := httptest.NewTLSServer(kubelet)
	t.Cleanup(node.Close)
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "app %s %s", r.Method, r.URL)
	}))
	t.Cleanup(app.Close)
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: node.Certificate().Raw}),
		0o600); err != nil {
		t.Fatal(err)
	}
	port := func(s *httptest.Server) int32 { return int32(s.Listener.Addr().(*net.TCPAddr).Port) }
	pod := func(name, node string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"},
			Status: corev1.PodStatus{PodIP: address},
			Spec: corev1.PodSpec{NodeName: node, InitContainers: []corev1.Container{{Name: "init"}},
				Containers: []corev1.Container{
					{Name: "app", Ports: []corev1.ContainerPort{{ContainerPort: port(app)}}}}}}
	}
	two := pod("two", "n")
	two.Spec.Containers = append(two.Spec.Containers, corev1.Container{Name: "side"})
	number, name := port(app), "web"
	p, err := kubeletproxy.New(kubeletproxy.Config{CAFile: ca, AllowLocal: local, Stores: registrytest.Stores{
		registrytest.Of(t, "pods", pod("p", "n"), pod("free", ""), two),
		registrytest.Of(t, "nodes", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeExternalIP, Address: "192.0.2.1"},
				{Type: corev1.NodeInternalIP, Address: address}},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: port(node)}}}}),
		registrytest.Of(t, "services",
			&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "svc", Namespace: "ns"},
				Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "web", Port: 80}}}},
			&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "empty", Namespace: "ns"},
				Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}),
		registrytest.Of(t, "endpointslices.discovery.k8s.io",
			&discoveryv1.EndpointSlice{
				ObjectMeta: metav1.ObjectMeta{Name: "svc-1", Namespace: "ns",
					Labels: map[string]string{discoveryv1.LabelServiceName: "svc"}},
				Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &number}},
				Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}},
					{Addresses: []string{"192.0.2.9"},
						Conditions: discoveryv1.EndpointConditions{Ready: new(false)}}}}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// connect reads the options of a request, as a server does, and connects.
func connect(c registry.Connecter, name, path string, w http.ResponseWriter, r *http.Request) error {
	opts, err := c.Options(path, r.URL.Query())
	if err != nil {
		return err
	}
	return c.Connect(r.Context(), "ns", name, opts, w, r)
}

// ask connects and returns the answer's body, or the error as its status code and message.
func ask(t *testing.T, c registry.Connecter, name, path, query string) string {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/x/"+path+"?"+query, nil)
	err := connect(c, name, path, w, r)
	if s := apierrors.APIStatus(nil); errors.As(err, &s) {
		return strconv.Itoa(int(s.Status().Code)) + " " + s.Status().Message
	}
	if err != nil {
		return err.Error()
	}
	if w.Code != http.StatusOK {
		return strconv.Itoa(w.Code) + " " + w.Body.String()
	}
	return w.Body.String()
}

func TestLog(t *testing.T) {
	t.Parallel()
	p := house(t, true)
	for _, c := range []struct{ pod, query, want string }{
		{"p", "", "/containerLogs/ns/p/app"},
		{"p", "follow=true&tailLines=5&timestamps=1&previous=false",
			"/containerLogs/ns/p/app?follow=true&tailLines=5&timestamps=true"},
		{"p", "follow=False&timestamps=FALSE&previous=True", "/containerLogs/ns/p/app?previous=true"},
		{"p", "follow&timestamps=0", "/containerLogs/ns/p/app?follow=true"},
		{"p", "limitBytes=4", "/con"},
		{"p", "container=init", `400 container "init" in pod "p" is waiting to start`},
		{"p", "container=x", "400 container x is not valid for pod p"},
		{"two", "", "400 a container name must be specified for pod two, choose one of: [init app side]"},
		{"free", "", "204 "},
		{"none", "", `404 pods "none" not found`},
		{"p", "tailLines=-1", `422 PodLogOptions "p" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0`},
		{"p", "sinceSeconds=0", `422 PodLogOptions "p" is invalid: sinceSeconds: Invalid value: 0: must be greater than 0`},
		{"p", "tailLines=x", `400 strconv.ParseInt: parsing "x": invalid syntax`},
	} {
		if got := ask(t, p.Log(), c.pod, "", c.query); got != c.want {
			t.Errorf("log of %s?%s: %s\nwant %s", c.pod, c.query, got, c.want)
		}
	}
}

func TestProxies(t *testing.T) {
	t.Parallel()
	p, strict := house(t, true), house(t, false)
	for _, c := range []struct {
		what       string
		proxy      registry.Connecter
		name, want string
	}{
		{"pod", p.Pod(), "p", "app GET /a/b?q=1"},
		{"pod with scheme", p.Pod(), "http:p:", "app GET /a/b?q=1"},
		{"pod", p.Pod(), "p:a:b:c", `400 invalid pod request "p:a:b:c"`},
		{"pod on loopback", strict.Pod(), "p", "400 address not allowed"},
		{"service", p.Service(), "svc", "app GET /a/b?q=1"},
		{"service by port name", p.Service(), "svc:web", "app GET /a/b?q=1"},
		{"service by port", p.Service(), "http:svc:80", "app GET /a/b?q=1"},
		{"service", p.Service(), "svc:81", `503 no service port 81 found for service "svc"`},
		{"service", p.Service(), "empty", `503 no endpoints available for service "empty"`},
		{"node", p.Node(), "n", "/a/b?q=1"},
		{"node on loopback", strict.Node(), "n", "400 address not allowed"},
		{"node", p.Node(), "x", `404 nodes "x" not found`},
	} {
		path := "/a/b"
		if got := ask(t, c.proxy, c.name, path, "q=1"); got != c.want &&
			!(c.what == "node" && strings.HasSuffix(got, c.want)) {
			t.Errorf("%s %s: %s\nwant %s", c.what, c.name, got, c.want)
		}
	}
}

// An upgraded connection passes bytes both ways, with the options in the kubelet's words.
func TestExecUpgrade(t *testing.T) {
	t.Parallel()
	p := house(t, true)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := connect(p.Exec(), "p", "", w, r); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	t.Cleanup(front.Close)
	var d net.Dialer
	conn, err := d.DialContext(context.Background(), "tcp", front.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /x?container=app&command=sh&command=-c&stdin=true&stdout=True&stderr=False&tty=False HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", resp, err)
	}
	if line, err := r.ReadString('\n'); err != nil ||
		line != "/exec/ns/p/app?command=sh&command=-c&input=1&output=1\n" {
		t.Errorf("the kubelet was asked for %q, %v", line, err)
	}
	fmt.Fprintln(conn, "hello")
	if line, err := r.ReadString('\n'); err != nil || line != "hello\n" {
		t.Errorf("echo %q, %v", line, err)
	}
}

func TestConnectionsAreRefusedEarly(t *testing.T) {
	t.Parallel()
	p := house(t, true)
	for _, c := range []struct {
		proxy            registry.Connecter
		pod, query, want string
	}{
		{p.Exec(), "free", "command=x&container=app", "400 pod free does not have a host assigned"},
		{p.Attach(), "two", "", "400 a container name must be specified for pod two, choose one of: [init app side]"},
		{p.PortForward(), "free", "", "400 pod free does not have a host assigned"},
		{p.PortForward(), "p", "ports=70000", `400 invalid port "70000"`},
		{p.Exec(), "p", "command=x", "400 Upgrade request required"},
	} {
		if got := ask(t, c.proxy, c.pod, "", c.query); got != c.want {
			t.Errorf("%s?%s: %s\nwant %s", c.pod, c.query, got, c.want)
		}
	}
}
