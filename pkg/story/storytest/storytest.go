// Package storytest has traces for tests, and compares what is drawn of them with recorded pictures.
package storytest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/api/traces"
	"bonsai/pkg/referencetest"
)

// Zero is when the traces begin.
func Zero() time.Time { return time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC) }

// span makes a span from milliseconds after Zero.
func span(id, parent, name, component string, from, took float64, attributes ...string) traces.Span {
	s := traces.Span{TraceID: strings.Repeat("a", 32), ID: id, Parent: parent, Name: name, Component: component,
		Start:    Zero().Add(time.Duration(from * float64(time.Millisecond))),
		Duration: time.Duration(took * float64(time.Millisecond))}
	for i := 0; i+1 < len(attributes); i += 2 {
		if s.Attributes == nil {
			s.Attributes = map[string]string{}
		}
		s.Attributes[attributes[i]] = attributes[i+1]
	}
	return s
}

// Pod is the trace of a pod that became Ready after 2.4 seconds and was later deleted.
func Pod() *traces.Trace {
	const (
		name, image   = "k8s.container.name", "container.image.name"
		plugin, point = "bonsai.scheduler.plugin", "bonsai.scheduler.extension_point"
	)
	t := trace("Pod", "pods", "default", "web-6d4cf56db6-x2x9p", "0b6f3f4e-31d1-4f65-9a84-5a3f8d2c7b11")
	t.Owner = &traces.Object{Group: "apps", Resource: "replicasets", Kind: "ReplicaSet", Namespace: "default",
		Name: "web-6d4cf56db6", UID: "7c1d0c39-6f0e-4a53-8f7e-111111111111"}
	t.Spans = []traces.Span{
		span("0001", "", "pod", "kubelet", 0, 2400),
		span("0002", "0001", "kube-controller-manager.replicaset", "kube-controller-manager", -14, 21),
		span("0003", "0001", "apiserver.create", "kube-apiserver", 1, 5),
		span("0017", "", "POST /api/v1/namespaces/{namespace}/pods", "kube-apiserver", -1, 8),
		span("0018", "0017", "admission", "kube-apiserver", 0, 1),
		span("0004", "0001", "scheduler.queue", "kube-scheduler", 8, 190),
		span("0005", "0001", "scheduler.decide", "kube-scheduler", 198, 7),
		span("0006", "0005", "scheduler.plugin", "kube-scheduler", 199, 1.2, plugin, "NodeResourcesFit", point,
			"Filter"),
		span("0007", "0005", "scheduler.plugin", "kube-scheduler", 200.3, 4.1, plugin, "VolumeBinding", point,
			"Reserve"),
		span("0008", "0001", "scheduler.bind", "kube-scheduler", 205, 9),
		span("0009", "0001", "kubelet.seen", "kubelet", 231, 0),
		span("000a", "0001", "kubelet.admit", "kubelet", 231, 1),
		span("000b", "0001", "kubelet.volumes", "kubelet", 232, 46),
		span("000c", "0001", "kubelet.sandbox", "kubelet", 232, 301),
		span("000d", "0001", "kubelet.pull", "kubelet", 533, 1204, name, "web", image, "nginx:1.27"),
		span("000e", "0001", "kubelet.create", "kubelet", 1737, 44, name, "web"),
		span("000f", "0001", "kubelet.start", "kubelet", 1781, 62, name, "web"),
		span("0010", "0001", "kubelet.probe", "kubelet", 1843, 540, name, "web"),
		span("0011", "0001", "kubelet.ready", "kubelet", 2383, 17),
		span("0012", "0001", "kube-proxy.endpoint", "kube-proxy", 2400, 88),
		span("0013", "", "kubelet.stop", "kubelet", 3600_000, 1500, name, "web"),
		span("0014", "", "kubelet.unsandbox", "kubelet", 3601_500, 120),
		span("0015", "", "kubelet.cleanup", "kubelet", 3601_620, 15),
		span("0016", "", "kubelet.delete", "kubelet", 3601_640, 8),
	}
	for i := range t.Spans {
		switch s := &t.Spans[i]; {
		case s.Component == "kubelet":
			s.Instance = "n1"
		case s.ID == "0017", s.ID == "0018": // the request has a trace of its own
			s.TraceID = strings.Repeat("b", 32)
		}
	}
	return done(t)
}

// Failing is the trace of a pod that is not Ready because its image cannot be pulled.
func Failing() *traces.Trace {
	t := trace("Pod", "pods", "default", "shop-0", "1a2b3c4d-31d1-4f65-9a84-5a3f8d2c7b22")
	t.Spans = []traces.Span{
		span("0001", "", "scheduler.queue", "kube-scheduler", 8, 2),
		span("0002", "", "scheduler.bind", "kube-scheduler", 12, 9),
		span("0003", "", "kubelet.sandbox", "kubelet", 32, 301),
		span("0004", "", "kubelet.pull", "kubelet", 340, 5000, "k8s.container.name", "shop"),
	}
	t.Spans[3].Error = "registry.example/shop:1: not found"
	return done(t)
}

// Hostile is a trace whose texts all try to steer a terminal and to leave an attribute or an element of a page.
func Hostile() *traces.Trace {
	const evil = "\x1b]0;owned\a\x1b[2J\u009b31m\u202e\r\n\"'></text></title></script><script>alert(1)</script><img src=x onerror=alert(1)>&"
	t := trace("Pod"+evil, "pods"+evil, "ns"+evil, "web"+evil, types.UID(evil))
	t.Spans = []traces.Span{
		span("1", "2", "pod"+evil, "kubelet"+evil, 0, 100, "k8s.container.name", evil, evil, evil),
		span("2", "1", "kubelet.pull"+evil, evil, 10, 90, "container.image.name", evil),
		span("2", "2", "\xff\x9b2J"+evil, "x"+evil, 100, 900),
		span("", "", evil, "", 1000, -5),
	}
	for i := range t.Spans {
		t.Spans[i].Error, t.Spans[i].Instance = "failed "+evil, evil
	}
	return done(t)
}

// Pods are traces of n pods of a Deployment that start one after the other. slower is by how many milliseconds the pull
// of each is longer than that of the one before.
func Pods(n int, slower float64) []*traces.Trace {
	var out []*traces.Trace
	for i := range n {
		t := trace("Pod", "pods", "default", fmt.Sprintf("web-%02d", i),
			types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)))
		from, pull := float64(i)*400, 300+float64(i)*slower
		t.Spans = []traces.Span{
			span("0001", "", "pod", "kubelet", from, 500+pull),
			span("0002", "0001", "scheduler.queue", "kube-scheduler", from, 100+float64(i)),
			span("0003", "0001", "kubelet.sandbox", "kubelet", from+150, 200),
			span("0004", "0001", "kubelet.pull", "kubelet", from+350, pull, "k8s.container.name", "web"),
			span("0005", "0001", "kubelet.start", "kubelet", from+350+pull, 100, "k8s.container.name", "web"),
			span("0006", "0001", "kubelet.ready", "kubelet", from+450+pull, 50),
		}
		out = append(out, done(t))
	}
	return out
}

func trace(kind, resource, namespace, name string, uid types.UID) *traces.Trace {
	t := &traces.Trace{Object: traces.Object{Kind: kind, Resource: resource, Namespace: namespace, Name: name,
		UID: uid}}
	t.APIVersion, t.Kind = traces.GroupVersion.String(), "Trace"
	t.Namespace, t.Name = namespace, string(uid)
	return t
}

// done sets what follows from the spans.
func done(t *traces.Trace) *traces.Trace {
	t.SpanCount = len(t.Spans)
	for i := range t.Spans {
		if s := &t.Spans[i]; i == 0 || s.Start.Before(t.CreationTimestamp.Time) {
			t.CreationTimestamp = metav1.NewTime(s.Start)
		}
		if end := t.Spans[i].End(); end.After(t.LastSeen) {
			t.LastSeen = end
		}
	}
	return t
}

// Golden compares got with testdata/name; with -update it writes the file first.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if referencetest.Updating() {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -run %s -args -update):\n%s", file, t.Name(), got)
	}
}
