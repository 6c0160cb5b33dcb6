package traced_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/memory"
	"bonsai/pkg/apiserver/storage/storagetest"
	"bonsai/pkg/apiserver/storage/traced"
	"bonsai/pkg/trace/traceparent"
	"bonsai/pkg/trace/tracetest"
)

// TestSuite: it changes nothing of what a storage does.
func TestSuite(t *testing.T) {
	t.Parallel()
	storagetest.Suite(t, func(*testing.T) storage.Interface {
		kept := memory.New(storagetest.Table())
		return compacts{traced.Storage{Backend: kept}, kept}
	})
}

// compacts is a traced storage that the suite can compact.
type compacts struct {
	traced.Storage
	kept *memory.Storage
}

// Compact implements storagetest.Compacter.
func (c compacts) Compact(ctx context.Context, revision int64) error {
	return c.kept.Compact(ctx, revision)
}

// TestSpans: the calls of a recorded request are its steps, those of others are not recorded.
func TestSpans(t *testing.T) {
	t.Parallel()
	tracer, spans := tracetest.New("kube-apiserver")
	s := traced.Storage{Backend: memory.New(storagetest.Table())}
	if _, err := s.Get(t.Context(), "/registry/pods/ns/a", 0); err == nil {
		t.Fatal("there is such a pod")
	}
	ctx, request := tracer.Request(t.Context(), "GET", traceparent.New(), true, time.Now())
	if _, err := s.Get(ctx, "/registry/pods/ns/a", 0); err == nil {
		t.Fatal("there is such a pod")
	}
	_, err := s.List(ctx, "/registry/pods/", storage.ListOptions{Match: storage.Latest})
	if err != nil {
		t.Fatal(err)
	}
	request.End()
	if got := spans.Names(); !slices.Equal(got, []string{"etcd.get", "etcd.list", "GET"}) {
		t.Errorf("%q", got)
	}
	if all := spans.All(); all[0].Parent().SpanID() != all[2].SpanContext().SpanID() ||
		all[0].Status().Description == "" {
		t.Errorf("%v below %v: %v", all[0].Name(), all[0].Parent(), all[0].Status())
	}
}
