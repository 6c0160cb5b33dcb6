package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// The requests that fill the API server's queue of spans: each is a span. queueOfSpans is what waits at most: the queue
// and the batch that is being sent (pkg/trace/export).
const (
	manyRequests = 12_000
	queueOfSpans = 4096 + 512
)

// TestTracesGone: bonsai-traces is stopped, is killed, has a full disk, loses its sockets. Pods start as fast as
// otherwise, components drop and count what they cannot send and do not grow, and when it is back traces arrive again.
// It is not parallel: it takes the store of traces away from everyone.
func TestTracesGone(t *testing.T) {
	isLong(t)
	k := newNamespace(t, "kubectl", "tracesgone")
	c := newPodStarter(t, k.namespace)
	c.start(t) // brings the image to the nodes
	usually := c.start(t)
	c.arrive(t, k)
	for _, broken := range []struct {
		name string
		// breaks returns what mends it.
		breaks func(t *testing.T) func()
		// full has the API server make more spans than wait, kept has those that are made meanwhile arrive.
		full, kept bool
		// logged is what the log then says.
		logged string
	}{
		{name: "stopped", breaks: stopTraces, full: true},
		{name: "killed", breaks: func(t *testing.T) func() { kill(t, "bonsai-traces"); return func() {} }, kept: true},
		{name: "its disk is full", breaks: fillTraces, kept: true, logged: "no space left on device"},
		{name: "its sockets are gone", breaks: removeTracesSockets},
	} {
		t.Run(broken.name, func(t *testing.T) {
			k := kubectl{t: t, binary: k.binary, namespace: k.namespace}
			mend := sync.OnceFunc(broken.breaks(t))
			t.Cleanup(mend)
			// A machine may be busy for a while. Who waits for a collector waits for seconds, again and again.
			if took := c.start(t); took > 2*usually+5*time.Second {
				t.Errorf("pods are available after %v, usually after %v", took, usually)
			}
			if broken.full {
				c.overflow(t, k)
			}
			if broken.kept {
				c.arrive(t, k)
			}
			if broken.logged != "" {
				waitFor(t, "the log says: "+broken.logged, func() bool {
					out, err := cluster.command(usual, "bonsai", "--data-dir", cluster.data, "logs", "bonsai-traces")
					return err == nil && strings.Contains(out, broken.logged)
				})
			}
			mend()
			c.arrive(t, k)
		})
	}
}

// stopTraces stops the process, which then neither answers nor closes its connections.
func stopTraces(t *testing.T) func() {
	pid := pidOf(t, "host", "bonsai-traces")
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Error(err)
		}
	}
}

// fillTraces has the process begin anew in a directory whose file system is full.
func fillTraces(t *testing.T) func() {
	dir := filepath.Join(cluster.data, "traces")
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatal(err)
	}
	fill(t, filepath.Join(dir, "other"))
	kill(t, "bonsai-traces")
	return func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
		kill(t, "bonsai-traces")
	}
}

// removeTracesSockets removes the sockets for spans, and has a component look for one.
func removeTracesSockets(t *testing.T) func() {
	for _, of := range []string{"spans", "n1", "n2"} {
		if err := os.Remove(filepath.Join(cluster.data, "run", of, "otlp.sock")); err != nil {
			t.Fatal(err)
		}
	}
	kill(t, "kube-scheduler")
	return func() { kill(t, "bonsai-traces") }
}

// podStarter makes pods without asking for the cluster's APIs, one of which may not answer.
type podStarter struct {
	client    *kubernetes.Clientset
	namespace string
	made      int
}

func newPodStarter(t *testing.T, namespace string) *podStarter {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", cluster.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &podStarter{client: client, namespace: namespace}
}

// start returns how long it takes until the pods of a Deployment are available, the median of three.
func (c *podStarter) start(t *testing.T) time.Duration {
	t.Helper()
	var times []time.Duration
	for range 3 {
		times = append(times, c.deploy(t))
	}
	slices.Sort(times)
	return times[1]
}

func (c *podStarter) deploy(t *testing.T) time.Duration {
	t.Helper()
	c.made++
	name, replicas, none := fmt.Sprintf("web-%d", c.made), int32(4), int64(0)
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{Replicas: &replicas,
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &none, Containers: []corev1.Container{{Name: "c",
				Image: "localhost/busybox:1.0", Command: []string{"sleep", "1000000"}}}}}}}
	deployments := c.client.AppsV1().Deployments(c.namespace)
	begun := time.Now()
	if _, err := deployments.Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, name+" is available", func() bool {
		d, err := deployments.Get(t.Context(), name, metav1.GetOptions{})
		return err == nil && d.Status.AvailableReplicas == replicas
	})
	took := time.Since(begun)
	if err := deployments.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	return took
}

// overflow makes more spans than the API server lets wait: it drops and counts the others, answers as before, and does
// not grow.
func (c *podStarter) overflow(t *testing.T, k kubectl) {
	t.Helper()
	pid := pidOf(t, "host", "kube-apiserver")
	before, memory := c.spans(t), resident(t, pid)
	g, ctx := errgroup.WithContext(t.Context())
	for range 8 {
		g.Go(func() error {
			for range manyRequests / 8 {
				if _, err := c.client.CoreV1().Namespaces().Get(ctx, c.namespace, metav1.GetOptions{}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	after := c.spans(t)
	lost := after["dropped"] + after["failed"] - before["dropped"] - before["failed"]
	if gone := lost + after["sent"] - before["sent"]; gone < manyRequests-queueOfSpans || lost == 0 {
		t.Errorf("of %d spans more than %d wait: before %v, after %v", manyRequests, queueOfSpans, before, after)
	}
	if grown := resident(t, pid) - memory; grown > 64<<20 {
		t.Errorf("kube-apiserver has grown by %d MiB", grown>>20)
	}
}

// spans are what became of the API server's spans, by result.
func (c *podStarter) spans(t *testing.T) map[string]float64 {
	t.Helper()
	text, err := c.client.RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		var result string
		var n float64
		if _, err := fmt.Sscanf(line, "bonsai_trace_spans_total{result=%q} %g", &result, &n); err == nil {
			out[result] = n
		}
	}
	if len(out) != 3 {
		t.Fatalf("the API server counts spans as %v", out)
	}
	return out
}

// resident is the memory of a process.
func resident(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	var size, pages int
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// arrive has the store show the trace of a new object. Spans that come while no more can wait are lost, so that another
// object is made now and then.
func (c *podStarter) arrive(t *testing.T, k kubectl) {
	t.Helper()
	const questions = 30 // for each object
	var object *corev1.ConfigMap
	asked := 0
	waitFor(t, "the trace of an object arrives", func() bool {
		if asked%questions == 0 {
			object = c.object(t)
		}
		asked++
		out, err := k.try("get", "--raw", "/apis/traces.bonsai.io/v1alpha1/namespaces/"+c.namespace+"/traces/"+
			string(object.UID))
		return err == nil && strings.Contains(out, `"apiserver.create"`)
	})
}

// object makes an object.
func (c *podStarter) object(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	c.made++
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("seen-%d", c.made)}}
	object, err := c.client.CoreV1().ConfigMaps(c.namespace).Create(context.WithoutCancel(t.Context()), object,
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return object
}
