package e2e

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	otlp "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/traces"
)

// TestTraces: spans that come in by the socket are the cluster's API traces.bonsai.io, which shows them in tables and
// by name, describes itself, and obeys RBAC: a viewer of a namespace sees its traces, and no others.
func TestTraces(t *testing.T) {
	t.Parallel()
	k := newNamespace(t, "kubectl", "traces")
	k.run("wait", "--for=condition=Available", "apiservice/v1alpha1.traces.bonsai.io", bound(60))
	k.run("create", "configmap", "seen")
	uid := k.run("get", "configmap", "seen", "-o", "jsonpath={.metadata.uid}")
	sendSpan(t, filepath.Join(cluster.data, "run", "spans", "otlp.sock"), uid, "1", k.namespace)
	sendSpan(t, filepath.Join(cluster.data, "run", "n1", "otlp.sock"), uid, "2", k.namespace)
	if out := k.run("get", "traces", "--field-selector=object.name=seen,object.kind=ConfigMap"); !strings.Contains(out,
		"configmaps/seen ") || !strings.HasPrefix(out, "NAME") {
		t.Errorf("the table: %s", out)
	}
	var got struct {
		Spans []struct{ Name, Component, Instance string }
	}
	if err := json.Unmarshal([]byte(k.run("get", "traces", uid, "-o", "json")), &got); err != nil {
		t.Fatal(err)
	}
	var from []string
	for _, span := range got.Spans {
		if span.Name == "e2e.step" { // the API server sends its own spans of the create, some seconds later
			from = append(from, span.Instance)
		}
	}
	if !slices.Equal(from, []string{"elsewhere", "n1"}) {
		t.Errorf("the spans are from %s: %+v", from, got)
	}
	if out := k.run("explain", "traces.object"); !strings.Contains(out, "KIND:       Trace") {
		t.Errorf("explain: %s", out)
	}
	k.run("create", "rolebinding", "viewer", "--clusterrole=view", "--user=viewer")
	k.eventually("a viewer sees traces", func(out string) bool { return strings.Contains(out, uid) }, "--as=viewer",
		"get", "traces", "-o", "name")
	for _, args := range [][]string{{"get", "traces", "-A"}, {"get", "clustertraces"},
		{"get", "traces", "-n", "kube-system"}, {"delete", "traces", uid}} {
		if out, err := k.try(append([]string{"--as=viewer"}, args...)...); err == nil ||
			!strings.Contains(out, "orbidden") {
			t.Errorf("a viewer may %v: %s, %v", args, out, err)
		}
	}
	if out, err := k.try("delete", "traces", uid); err == nil || !strings.Contains(out, "MethodNotAllowed") {
		t.Errorf("delete: %s, %v", out, err)
	}
}

// sendSpan sends one span of a ConfigMap to a socket.
func sendSpan(t *testing.T, socket, uid, id, namespace string) {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	text := func(key, value string) *common.KeyValue {
		return &common.KeyValue{Key: key,
			Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}}}
	}
	of, ok := traces.TraceOf(types.UID(uid))
	if !ok {
		t.Fatalf("the UID is %q", uid)
	}
	span := &trace.Span{TraceId: of[:], SpanId: []byte("spanspa" + id), Name: "e2e.step", StartTimeUnixNano: 1,
		EndTimeUnixNano: 2, Attributes: []*common.KeyValue{text("bonsai.object.kind", "ConfigMap"),
			text("bonsai.object.resource", "configmaps"), text("bonsai.object.namespace", namespace),
			text("bonsai.object.name", "seen"), text("bonsai.object.uid", uid)}}
	message := &otlp.ExportTraceServiceRequest{ResourceSpans: []*trace.ResourceSpans{{
		Resource:   &resource.Resource{Attributes: []*common.KeyValue{text("service.instance.id", "elsewhere")}},
		ScopeSpans: []*trace.ScopeSpans{{Spans: []*trace.Span{span}}}}}}
	if _, err := otlp.NewTraceServiceClient(conn).Export(context.WithoutCancel(t.Context()), message); err != nil {
		t.Fatal(err)
	}
}
