package trace_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/trace"
	"bonsai/pkg/trace/tracetest"
)

const (
	uid      = "f3a1c2d4-0b5e-4c6f-8a7b-9c0d1e2f3a4b"
	ownerUID = "00112233-4455-4677-8899-aabbccddeeff"
	client   = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-"
)

// TestOf: a UUID is a trace id without its dashes, and so is the UID of a static pod, which is 32 hex digits.
func TestOf(t *testing.T) {
	t.Parallel()
	const id = "f3a1c2d40b5e4c6f8a7b9c0d1e2f3a4b"
	for have, want := range map[types.UID]string{uid: id, id: id, "": "", "u1": "", types.UID(strings.ToUpper(uid)): "",
		uid + "0": "", types.UID(uid[:9] + "g" + uid[10:]): "", types.UID(strings.Repeat("0", 32)): ""} {
		got, ok := trace.Of(have)
		if ok != (want != "") || ok && got.String() != want {
			t.Errorf("UID %q: trace %s, %t, want %q", have, got, ok, want)
		}
	}
	if got := trace.Root(must(t, uid)).String(); got != id[:16] {
		t.Errorf("the root is %s", got)
	}
	if !trace.Root(oteltrace.TraceID{15: 1}).IsValid() {
		t.Error("a root has no id")
	}
}

func must(t *testing.T, uid types.UID) oteltrace.TraceID {
	t.Helper()
	id, ok := trace.Of(uid)
	if !ok {
		t.Fatal(uid)
	}
	return id
}

func pod() *corev1.Pod {
	p := &corev1.Pod{}
	p.Namespace, p.Name, p.UID, p.Spec.NodeName = "ns", "web-1", uid, "n1"
	p.CreationTimestamp = metav1.Unix(1000, 0)
	yes := true
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web",
		UID: ownerUID, Controller: &yes}}
	return p
}

// TestStep: the spans of a pod are below its root, and name the pod and its owner in the words of the conventions.
func TestStep(t *testing.T) {
	t.Parallel()
	tracer, spans := tracetest.New("kubelet")
	start := time.Unix(1001, 5)
	id := tracer.Step(trace.Pod(pod()), trace.Step{Name: "kubelet.pull", Start: start, End: start.Add(time.Second),
		Attributes: []attribute.KeyValue{attribute.String("container.image.name", "nginx")},
		Links:      trace.ToOwner(ownerUID, oteltrace.SpanID{}), Err: errors.New("no\xff such image")})
	tracer.Reached(trace.Pod(pod()), start.Add(2*time.Second))
	all := spans.All()
	if len(all) != 2 {
		t.Fatalf("%q", spans.Names())
	}
	step, root := all[0], all[1]
	if step.Name() != "kubelet.pull" || step.SpanContext().SpanID() != id ||
		step.SpanContext().TraceID() != must(t, uid) || step.Parent().SpanID() != trace.Root(must(t, uid)) ||
		!step.StartTime().Equal(start) || !step.EndTime().Equal(start.Add(time.Second)) ||
		step.Status() != (sdktrace.Status{Code: codes.Error, Description: "no such image"}) {
		t.Errorf("%s: %v below %v, %v to %v, %+v", step.Name(), step.SpanContext(), step.Parent(), step.StartTime(),
			step.EndTime(), step.Status())
	}
	for key, want := range map[string]string{
		"bonsai.object.group": "", "bonsai.object.resource": "pods", "bonsai.object.kind": "Pod",
		"bonsai.object.namespace": "ns", "bonsai.object.name": "web-1", "bonsai.object.uid": uid,
		"bonsai.owner.group": "apps", "bonsai.owner.resource": "replicasets", "bonsai.owner.kind": "ReplicaSet",
		"bonsai.owner.name": "web", "bonsai.owner.uid": ownerUID, "k8s.namespace.name": "ns", "k8s.pod.name": "web-1",
		"k8s.pod.uid": uid, "k8s.node.name": "n1", "container.image.name": "nginx",
	} {
		if got := tracetest.Attribute(step, key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if l := step.Links(); len(l) != 1 || l[0].SpanContext.TraceID() != must(t, ownerUID) ||
		l[0].SpanContext.SpanID() != trace.Root(must(t, ownerUID)) || l[0].Attributes[0].Value.AsString() != "owner" {
		t.Errorf("links: %+v", step.Links())
	}
	if root.Name() != "pod" || root.SpanContext().SpanID() != trace.Root(must(t, uid)) || root.Parent().IsValid() ||
		root.SpanContext().TraceID() != must(t, uid) || !root.StartTime().Equal(pod().CreationTimestamp.Time) {
		t.Errorf("the root is %s %v, from %v", root.Name(), root.SpanContext(), root.StartTime())
	}
}

// TestOwners: the resource of an owner is known for Kubernetes' own kinds.
func TestOwners(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{"batch/v1": "jobs", "v1": "jobs", "flowcontrol.apiserver.k8s.io/v1": "jobs",
		"example.com/v1": "", "a/b/c": ""} {
		p := pod()
		p.OwnerReferences[0].APIVersion, p.OwnerReferences[0].Kind = version, "Job"
		if got := trace.Pod(p).Owner.Resource; got != want {
			t.Errorf("%s: %q, want %q", version, got, want)
		}
	}
}

// TestRate: an object is recorded or not by its UID alone, and so many as the rate says. The comparison of
// OpenTelemetry's own sampler would take none of all UUIDs at a third.
func TestRate(t *testing.T) {
	t.Parallel()
	random := rand.NewChaCha8([32]byte{1})
	for _, rate := range []int32{0, 1000, 333_333, 500_000, 900_000, 1_000_000} {
		one, other := trace.New(trace.Config{PerMillion: rate, Outlet: &tracetest.Spans{}}),
			trace.New(trace.Config{Component: "other", PerMillion: rate, Outlet: &tracetest.Spans{}})
		const n = 20_000
		taken := 0
		for range n {
			id, err := uuid.NewRandomFromReader(random)
			if err != nil {
				t.Fatal(err)
			}
			uid := types.UID(id.String())
			if one.Records(uid) != other.Records(uid) {
				t.Fatalf("two components disagree about %s", uid)
			}
			if one.Records(uid) {
				taken++
			}
		}
		p := float64(rate) / 1e6
		if off := math.Abs(float64(taken)/n - p); off > 5*math.Sqrt(p*(1-p)/n) {
			t.Errorf("%d of a million: %d of %d", rate, taken, n)
		}
	}
}

// TestRequest: a known client decides about its request, an unknown one and one that says nothing do not.
func TestRequest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rate           int32
		header         string
		known, records bool
		joins          bool
	}{
		{0, client + "01", true, true, true},
		{0, client + "01", false, false, false},
		{0, client + "00", true, false, false},
		{0, "", true, false, false},
		{0, "nonsense", true, false, false},
		{1_000_000, client + "01", true, true, true},
		{1_000_000, client + "00", true, false, false},
		{1_000_000, client + "00", false, true, true},
		{1_000_000, "", true, true, false},
		{1_000_000, "nonsense", false, true, false},
	} {
		spans := &tracetest.Spans{}
		tracer := trace.New(trace.Config{Component: "kube-apiserver", PerMillion: c.rate, Outlet: spans})
		begun := time.Unix(100, 0)
		ctx, span := tracer.Request(t.Context(), "GET /healthz", c.header, c.known, begun)
		_, child := trace.Start(ctx, "authorization")
		child.Set(attribute.Bool("allowed", true))
		child.Fail(errors.New("undecided"))
		links, out := trace.ToRequest(ctx), trace.Outgoing(ctx)
		child.End()
		span.Fail(nil)
		span.End()
		if (span != nil) != c.records || (child != nil) != c.records || len(links) > 0 != c.records ||
			(out != "") != c.records {
			t.Errorf("%+v: %v, %v, %v, %q", c, span, child, links, out)
			continue
		}
		if !c.records {
			continue
		}
		all := spans.All()
		request := all[1].SpanContext()
		if all[0].Parent().SpanID() != request.SpanID() || all[0].SpanContext().TraceID() != request.TraceID() ||
			links[0].Span != request.SpanID() || !strings.Contains(out, request.TraceID().String()) ||
			!all[1].StartTime().Equal(begun) || all[1].SpanKind() != oteltrace.SpanKindServer {
			t.Errorf("%+v: %v below %v, links %v, out %q", c, all[0], all[1], links, out)
		}
		if joined := request.TraceID().String() == client[3:35]; joined != c.joins {
			t.Errorf("%+v: the trace is %s", c, request.TraceID())
		}
	}
}

// TestShortSteps: short steps of a request are recorded if its client asked for it, and if they fail.
func TestShortSteps(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{client + "01": "[short failed long GET]", "": "[failed long GET]"} {
		tracer, spans := tracetest.New("kube-apiserver")
		at := time.Unix(100, 0)
		ctx, span := tracer.Request(t.Context(), "GET", header, true, at)
		trace.Past(ctx, "short", at, at.Add(time.Millisecond-1), nil)
		trace.Past(ctx, "failed", at, at, errors.New("no"))
		trace.Past(ctx, "long", at, at.Add(time.Millisecond), nil)
		span.End()
		span.End()
		if got := fmt.Sprint(spans.Names()); got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
}

// TestValues: attributes of each type arrive, the last of those with one key, and none that is no UTF-8.
func TestValues(t *testing.T) {
	t.Parallel()
	tracer, spans := tracetest.New("kubelet")
	_, span := tracer.Request(t.Context(), "a\xff", client+"01", true, time.Unix(100, 0))
	span.Set(attribute.String("s", "x\xffy"), attribute.Int("i", -3), attribute.Float64("f", 0.5),
		attribute.Bool("b", true), attribute.StringSlice("l", []string{"a"}), attribute.String("again", "1"))
	span.Set(attribute.String("again", "2"))
	span.End()
	tracer.Step(trace.Pod(pod()), trace.Step{Name: "x", Attributes: []attribute.KeyValue{
		attribute.String("k8s.node.name", "n2")}})
	got := fmt.Sprint(spans.All()[0].Name(), spans.All()[0].Attributes())
	if want := "a" + fmt.Sprint([]attribute.KeyValue{attribute.String("s", "xy"), attribute.Int("i", -3),
		attribute.Float64("f", 0.5), attribute.Bool("b", true), attribute.String("l", `["a"]`),
		attribute.String("again", "2")}); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	nodes := 0
	for _, a := range spans.All()[1].Attributes() {
		if a.Key == "k8s.node.name" {
			nodes++
		}
	}
	if node := tracetest.Attribute(spans.All()[1], "k8s.node.name"); nodes != 1 || node != "n2" {
		t.Errorf("%d nodes, the first is %s", nodes, node)
	}
}

// TestRound: what a round makes links to it, and only a round that makes something is recorded.
func TestRound(t *testing.T) {
	t.Parallel()
	tracer, spans := tracetest.New("kube-controller-manager")
	begun := time.Unix(100, 0)
	tracer.Round("replicaset", begun).End(begun, nil)
	round := trace.From(trace.With(t.Context(), tracer)).Round("replicaset", begun)
	round.Made(trace.Pod(pod()), begun.Add(time.Second))
	round.End(begun.Add(2*time.Second), errors.New("quota"))
	all := spans.All()
	if len(all) != 2 {
		t.Fatalf("%q", spans.Names())
	}
	made, reconcile := all[0], all[1]
	if made.Name() != "kube-controller-manager.replicaset" || made.SpanContext().TraceID() != must(t, uid) ||
		len(made.Links()) != 1 || made.Links()[0].SpanContext.TraceID() != must(t, ownerUID) ||
		made.Links()[0].SpanContext.SpanID() != reconcile.SpanContext().SpanID() {
		t.Errorf("made: %s %v, links %v", made.Name(), made.SpanContext(), made.Links())
	}
	if reconcile.Name() != "replicaset.reconcile" || reconcile.SpanContext().TraceID() != must(t, ownerUID) ||
		reconcile.Parent().SpanID() != trace.Root(must(t, ownerUID)) || reconcile.Status().Description != "quota" ||
		tracetest.Attribute(reconcile, "k8s.replicaset.name") != "web" ||
		tracetest.Attribute(reconcile, "bonsai.object.namespace") != "ns" {
		t.Errorf("reconcile: %s %v below %v: %+v", reconcile.Name(), reconcile.SpanContext(), reconcile.Parent(),
			reconcile.Attributes())
	}
}

// TestBounds: no client makes a span large.
func TestBounds(t *testing.T) {
	t.Parallel()
	tracer, spans := tracetest.New("kubelet")
	var many []attribute.KeyValue
	for i := range 1000 {
		many = append(many,
			attribute.String(string(binary.AppendUvarint([]byte("k"), uint64(i))), strings.Repeat("ü", 1<<16)))
	}
	links := make([]trace.Link, 100)
	for i := range links {
		links[i] = trace.ToOwner(ownerUID, oteltrace.SpanID{})[0]
	}
	tracer.Step(trace.Pod(pod()), trace.Step{Name: "x", Attributes: many, Links: links,
		Err: errors.New(strings.Repeat("x", 1<<20))})
	span := spans.All()[0]
	if len(span.Attributes()) > 48 || len(span.Links()) > 8 || len(span.Status().Description) > 1024 {
		t.Errorf("%d attributes, %d links, %d bytes of an error", len(span.Attributes()), len(span.Links()),
			len(span.Status().Description))
	}
	for _, a := range span.Attributes() {
		if len(a.Value.AsString()) > 1024 {
			t.Errorf("%s has %d bytes", a.Key, len(a.Value.AsString()))
		}
	}
}

// TestOff: without a Tracer, and without a recorded request, nothing is allocated.
func TestOff(t *testing.T) {
	var off *trace.Tracer
	none := trace.New(trace.Config{Outlet: &tracetest.Spans{}})
	ctx, p := t.Context(), pod()
	for what, f := range map[string]func(){
		"Records": func() { off.Records(p.UID); none.Records(p.UID) },
		"Start": func() {
			ctx, span := trace.Start(ctx, "x")
			span.Fail(nil)
			span.End()
			trace.ToRequest(ctx)
			trace.Outgoing(ctx)
		},
		"Request": func() { off.Request(ctx, "x", client+"01", true, time.Time{}) },
		"Round": func() {
			round := trace.From(ctx).Round("x", time.Time{})
			round.Made(trace.Object{}, time.Time{})
			round.End(time.Time{}, nil)
		},
	} {
		if n := testing.AllocsPerRun(100, f); n > 0 {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
	off.Step(trace.Pod(p), trace.Step{})
	off.Reached(trace.Pod(p), time.Time{})
}

// dropped is a outlet that keeps nothing.
type dropped struct{}

func (dropped) Take([]byte) {}

// BenchmarkStep is the cost of a span of a pod without what sends it, and of one that is not recorded.
func BenchmarkStep(b *testing.B) {
	p, at := pod(), time.Now()
	for name, rate := range map[string]int32{"on": 1_000_000, "off": 0} {
		b.Run(name, func(b *testing.B) {
			tracer := trace.New(trace.Config{Component: "kubelet", PerMillion: rate, Outlet: dropped{}})
			b.ReportAllocs()
			for b.Loop() {
				if tracer.Records(p.UID) {
					tracer.Step(trace.Pod(p), trace.Step{Name: "kubelet.sandbox", Start: at, End: at})
				}
			}
		})
	}
}

// BenchmarkRequest is the cost of a request with three steps, without what sends its spans.
func BenchmarkRequest(b *testing.B) {
	tracer, at := trace.New(trace.Config{PerMillion: 1_000_000, Outlet: dropped{}}), time.Now()
	b.ReportAllocs()
	for b.Loop() {
		ctx, s := tracer.Request(b.Context(), "PATCH", "", true, at)
		trace.Past(ctx, "authentication", at, at, nil)
		for _, step := range []string{"authorization", "etcd.update"} {
			_, child := trace.Start(ctx, step)
			child.Set(attribute.String("db.system.name", "etcd"))
			child.End()
		}
		s.Rename("PATCH /api/v1/namespaces/{namespace}/pods/{name}/status")
		s.Set(attribute.String("http.request.method", "PATCH"), attribute.Int("http.response.status_code", 200),
			attribute.String("http.route", "/api/v1/namespaces/{namespace}/pods/{name}/status"),
			attribute.String("bonsai.request.resource", "pods"), attribute.String("k8s.namespace.name", "shop"),
			attribute.String("bonsai.request.audit_id", "9b0e7a51-1f0c-4e46-9d3c-0c8f1f5b9c11"))
		s.End()
	}
}
