// Package metrics puts metrics-server, unchanged, behind a cluster's API server, as an APIService, and asks it what its clients ask:
// kubectl get --raw and kubectl top.
package metrics

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// user has a cluster in $KUBECONFIG.
type user struct {
	t   *testing.T
	bin string
}

// try runs kubectl and returns all that it says.
func (u user) try(in string, args ...string) (string, error) {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(u.bin, "kubectl"), args...)
	cmd.Stdin = strings.NewReader(in)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("kubectl %v: %w: %s", args, err, out)
	}
	return strings.TrimSpace(string(out)), err
}

func (u user) must(in string, args ...string) string {
	u.t.Helper()
	out, err := u.try(in, args...)
	if err != nil {
		u.t.Fatal(err)
	}
	return out
}

// start runs metrics-server on the host until the test ends, where the API server's address leads, and returns its port.
func (u user) start(host string) string {
	u.t.Helper()
	free, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		u.t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(free.Addr().String())
	if err != nil {
		u.t.Fatal(err)
	}
	free.Close() //nolint:errcheck // metrics-server listens there
	log, err := os.Create(filepath.Join(u.t.TempDir(), "log"))
	if err != nil {
		u.t.Fatal(err)
	}
	config := os.Getenv("KUBECONFIG")
	cmd := exec.Command(filepath.Join(u.bin, "metrics-server"), "--kubeconfig="+config, "--authentication-kubeconfig="+config, "--authorization-kubeconfig="+config,
		"--bind-address="+host, "--secure-port="+port, "--cert-dir="+u.t.TempDir(), "--metric-resolution=15s",
		"--kubelet-preferred-address-types=InternalIP", "--kubelet-insecure-tls")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() {
		cmd.Process.Kill() //nolint:errcheck // it may have ended
		cmd.Wait()         //nolint:errcheck // it was killed
		if u.t.Failed() {
			said, _ := os.ReadFile(log.Name())
			u.t.Logf("metrics-server: %s", said)
		}
	})
	return port
}

// objects are those of metrics-server's own manifests, but for its Deployment: the server is a process of the host.
const objects = `
apiVersion: v1
kind: Service
metadata: {name: metrics-server, namespace: kube-system}
spec: {ports: [{name: https, port: 443}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: metrics-server, namespace: kube-system, labels: {kubernetes.io/service-name: metrics-server}}
addressType: IPv4
ports: [{name: https, port: PORT}]
endpoints: [{addresses: [HOST]}]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.metrics.k8s.io}
spec:
  service: {name: metrics-server, namespace: kube-system}
  group: metrics.k8s.io
  version: v1beta1
  insecureSkipTLSVerify: true
  groupPriorityMinimum: 100
  versionPriority: 100
`

func TestMetricsServer(t *testing.T) {
	if os.Getenv("USE_EXISTING_CLUSTER") != "true" {
		t.Skip("SKIPPED: no cluster is given; run `make ecosystem`")
	}
	bin, err := filepath.Abs("../../../bin")
	if err != nil {
		t.Fatal(err)
	}
	u := user{t: t, bin: bin}
	host := u.must("", "get", "endpointslices", "kubernetes", "-o", "jsonpath={.endpoints[0].addresses[0]}")
	manifest := strings.NewReplacer("HOST", host, "PORT", u.start(host)).Replace(objects)
	u.must(manifest, "apply", "-f", "-")
	t.Cleanup(func() { u.must(manifest, "delete", "-f", "-") })
	u.must("", "wait", "--for=condition=Available", "apiservice/v1beta1.metrics.k8s.io", "--timeout=90s")

	var nodes struct {
		Kind  string
		Items []struct {
			Metadata struct{ Name string }
			Usage    map[string]string
		}
	}
	deadline := time.Now().Add(90 * time.Second) // two rounds of its questions to the kubelets, on a busy machine
	for tick := time.NewTicker(time.Second); len(nodes.Items) == 0; <-tick.C {
		if err := json.Unmarshal([]byte(u.must("", "get", "--raw", "/apis/metrics.k8s.io/v1beta1/nodes")), &nodes); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatal("no node has metrics")
		}
	}
	if n := nodes.Items[0]; nodes.Kind != "NodeMetricsList" || n.Usage["cpu"] == "" || n.Usage["memory"] == "" {
		t.Errorf("%+v", nodes)
	}
	for what, form := range map[string]string{
		"node":               `^NAME +CPU\(cores\) +CPU\(%\) +MEMORY\(bytes\) +MEMORY\(%\) *\n` + regexp.QuoteMeta(nodes.Items[0].Metadata.Name) + ` +\d+m +\d+% +\d+Mi +\d+%`,
		"pod -n kube-system": `^NAME +CPU\(cores\) +MEMORY\(bytes\) *\ncoredns-\S+ +\d+m +\d+Mi`,
	} {
		if out := u.must("", append([]string{"top"}, strings.Fields(what)...)...); !regexp.MustCompile(form).MatchString(out) {
			t.Errorf("top %s:\n%s", what, out)
		}
	}
	if out := u.must("", "api-resources", "--api-group=metrics.k8s.io"); !strings.Contains(out, "NodeMetrics") {
		t.Errorf("api-resources: %s", out)
	}
	if out := u.must("", "explain", "nodes.metrics.k8s.io"); !strings.Contains(out, "KIND:       NodeMetrics") {
		t.Errorf("explain: %s", out)
	}
	if _, err := u.try("", "--as=nobody", "get", "--raw", "/apis/metrics.k8s.io/v1beta1/nodes"); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("who may not: %v", err)
	}
	t.Run("autoscaling", func(t *testing.T) { autoscales(t, u) })
}
