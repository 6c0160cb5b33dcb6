// Package jaeger has the components send their spans to Jaeger, which shows a pod's life by its UID.
package jaeger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// TestPod: a Deployment's pod is found in Jaeger by its UID, with the spans of kube-apiserver, the controller manager
// and the scheduler, which are below its root and lead to the ReplicaSet.
func TestPod(t *testing.T) {
	bin := binaries(t, "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "jaeger")
	j := start(t, bin)
	client := j.controlPlane(t, bin)
	pod := bound(t, client)
	id := traceOf(pod.UID)
	want := map[string]string{"apiserver.create": "kube-apiserver",
		"kube-controller-manager.replicaset": "kube-controller-manager",
		"scheduler.queue":                    "kube-scheduler", "scheduler.decide": "kube-scheduler", "scheduler.bind": "kube-scheduler"}
	var got trace
	eventually(t, "Jaeger has the pod's spans", func() error {
		var err error
		if got, err = j.trace(t.Context(), id); err != nil {
			return err
		}
		for name, component := range want {
			if s := got.span(name); s == nil || got.Processes[s.Process].Name != component {
				return fmt.Errorf("no span %s of %s, but %q", name, component, got.names())
			}
		}
		return nil
	})
	for _, s := range got.Spans {
		if name := s.tag("k8s.pod.name"); s.TraceID != id || name != pod.Name {
			t.Errorf("%s of trace %s is of pod %q", s.Name, s.TraceID, name)
		}
	}
	owner := traceOf(metav1.GetControllerOf(pod).UID)
	create := got.span("apiserver.create")
	if !slices.ContainsFunc(create.References, func(r reference) bool { return r.TraceID == owner }) ||
		!slices.ContainsFunc(create.References, func(r reference) bool { return r.SpanID == id[:16] }) {
		t.Errorf("apiserver.create leads to %v, not below %s and to %s", create.References, id[:16], owner)
	}
	if of, err := j.trace(t.Context(), owner); err != nil || of.span("apiserver.create") == nil {
		t.Errorf("the ReplicaSet has %q, %v", of.names(), err)
	}
}

// binaries skips the test if a program is missing.
func binaries(t *testing.T, programs ...string) string {
	t.Helper()
	bin, err := filepath.Abs("../../../bin")
	if err != nil {
		t.Fatal(err)
	}
	if other := os.Getenv("BONSAI_BIN"); other != "" {
		bin = other
	}
	for _, program := range programs {
		if _, err := os.Stat(filepath.Join(bin, program)); err != nil {
			t.Skipf("SKIPPED: no %s; run `make tools components bin/jaeger`", program)
		}
	}
	return bin
}

// traceOf is the trace id of an object.
func traceOf(uid types.UID) string { return strings.ReplaceAll(string(uid), "-", "") }

// jaeger is Jaeger with its storage in memory.
type jaeger struct{ spans, query string }

// start starts Jaeger on loopback.
func start(t *testing.T, bin string) jaeger {
	j := jaeger{spans: freePort(t), query: freePort(t)}
	args := []string{"--collector.otlp.grpc.host-port=" + j.spans, "--query.http-server.host-port=" + j.query}
	for _, other := range []string{"admin.http", "collector.grpc-server", "collector.http-server", "collector.otlp.http",
		"query.grpc-server"} {
		args = append(args, "--"+other+".host-port="+freePort(t))
	}
	run(t, filepath.Join(bin, "jaeger"), args...)
	eventually(t, "Jaeger answers", func() error {
		_, err := get(t.Context(), "http://"+j.query+"/api/services")
		return err
	})
	return j
}

// controlPlane starts a control plane whose components send all spans to Jaeger, with a node that is none.
func (j jaeger) controlPlane(t *testing.T, bin string) *kubernetes.Clientset {
	dir := t.TempDir()
	config, kubeconfig := filepath.Join(dir, "tracing.yaml"), filepath.Join(dir, "kubeconfig")
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nsamplingRatePerMillion: 1000000\n" +
		"endpoint: " + j.spans + "\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	existing := false // also where the other tests of `make ecosystem` use a cluster
	env := &envtest.Environment{BinaryAssetsDirectory: bin, AttachControlPlaneOutput: testing.Verbose(),
		UseExistingCluster: &existing}
	env.ControlPlane.GetAPIServer().Configure().Set("tracing-config-file", config)
	c, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(kubeconfig, env.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, component := range []string{"kube-controller-manager", "kube-scheduler"} {
		_, port, err := net.SplitHostPort(freePort(t))
		if err != nil {
			t.Fatal(err)
		}
		run(t, filepath.Join(bin, component), "--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig,
			"--authorization-kubeconfig="+kubeconfig, "--bind-address=127.0.0.1", "--secure-port="+port,
			"--leader-elect=false", "--tracing-config-file="+config)
	}
	return newClient(t, c)
}

func newClient(t *testing.T, c *rest.Config) *kubernetes.Clientset {
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	if node, err = client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("10"),
		corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")}
	node.Status.Capacity = node.Status.Allocatable
	if _, err := client.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	return client
}

// bound makes a Deployment of one pod and returns the pod when it is on a node. It tolerates everything: the node is
// not ready.
func bound(t *testing.T, client *kubernetes.Clientset) (pod *corev1.Pod) {
	one, labels := int32(1), map[string]string{"app": "web"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{Replicas: &one,
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers:  []corev1.Container{{Name: "c", Image: "example.org/app:1.0"}}}}}}
	if _, err := client.AppsV1().Deployments("default").Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod is bound", func() error {
		pods, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
		if err != nil {
			return err
		}
		if len(pods.Items) != 1 || pods.Items[0].Spec.NodeName == "" {
			return fmt.Errorf("%d pods: %+v", len(pods.Items), pods.Items)
		}
		pod = &pods.Items[0]
		return nil
	})
	return pod
}

// The answers of Jaeger's query API, as far as they are looked at.
type (
	trace struct {
		Spans     []span             `json:"spans"`
		Processes map[string]process `json:"processes"`
	}
	process struct {
		Name string `json:"serviceName"`
	}
	span struct {
		TraceID    string      `json:"traceID"`
		Name       string      `json:"operationName"`
		Process    string      `json:"processID"`
		References []reference `json:"references"`
		Tags       []tag       `json:"tags"`
	}
	reference struct {
		TraceID string `json:"traceID"`
		SpanID  string `json:"spanID"`
	}
	tag struct {
		Key   string `json:"key"`
		Value any    `json:"value"`
	}
)

func (t trace) span(name string) *span {
	for i := range t.Spans {
		if t.Spans[i].Name == name {
			return &t.Spans[i]
		}
	}
	return nil
}

func (t trace) names() (names []string) {
	for _, s := range t.Spans {
		names = append(names, s.Name)
	}
	return names
}

func (s span) tag(key string) string {
	for _, t := range s.Tags {
		if t.Key == key {
			return fmt.Sprint(t.Value)
		}
	}
	return ""
}

// trace asks for a trace by its id.
func (j jaeger) trace(ctx context.Context, id string) (trace, error) {
	var answer struct{ Data []trace }
	body, err := get(ctx, "http://"+j.query+"/api/traces/"+id)
	if err == nil {
		err = json.Unmarshal(body, &answer)
	}
	if err == nil && len(answer.Data) != 1 {
		err = fmt.Errorf("%d traces", len(answer.Data))
	}
	if err != nil {
		return trace{}, err
	}
	return answer.Data[0], nil
}

func get(ctx context.Context, url string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	return body, err
}

// run starts a program, which ends with the test.
func run(t *testing.T, program string, args ...string) {
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
}

// freePort returns an address of loopback with a port that nobody has.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
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
