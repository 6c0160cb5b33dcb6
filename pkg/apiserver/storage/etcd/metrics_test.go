package etcd_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/etcd"
	"bonsai/pkg/apiserver/storage/etcdtest"
	"bonsai/pkg/apiserver/storage/storagetest"
)

// TestMetrics: requests count by operation and resource, whatever the prefix in etcd is, with the labels and buckets
// that a kube-apiserver v1.37.2 showed (testdata/metrics.txt, without the values).
func TestMetrics(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	resource := func(key string) schema.GroupResource {
		if !strings.HasPrefix(key, "/registry/things/") {
			t.Errorf("asked whose key %q is", key)
		}
		return schema.GroupResource{Group: "example.org", Resource: "things"}
	}
	s, err := etcd.New(t.Context(), etcd.Config{Endpoints: []string{etcdtest.Start(t).Endpoint}, Prefix: "/elsewhere",
		Facts: storagetest.Table(), Observe: etcd.NewMetrics(r, resource).Observe})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Create(t.Context(), "/registry/things/a",
		storage.Draft{Value: []byte("a"), Facts: &storage.Facts{}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Revision(t.Context()); err != nil { // is about no resource
		t.Fatal(err)
	}
	if size, err := etcd.Size(t.Context(), s); err != nil || size <= 0 {
		t.Errorf("the database has %d bytes: %v", size, err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := os.ReadFile("testdata/metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		kind := strings.ToLower(f.GetType().String())
		if !strings.Contains(string(recorded), "\n# TYPE "+f.GetName()+" "+kind+"\n") {
			t.Errorf("the real one has no %s %s", f.GetType(), f.GetName())
		}
		if len(f.GetMetric()) != 1 {
			t.Fatalf("%s has %d series, want that of the creation", f.GetName(), len(f.GetMetric()))
		}
		m := f.GetMetric()[0]
		if got := labels(m); !slices.Equal(got, []string{"group=example.org", "operation=create", "resource=things"}) {
			t.Errorf("%s has the labels %q", f.GetName(), got)
		}
		if n := strings.Count(string(recorded), f.GetName()+"_bucket") - 1; m.GetHistogram() != nil &&
			len(m.GetHistogram().GetBucket()) != n {
			t.Errorf("%s has %d buckets, want %d", f.GetName(), len(m.GetHistogram().GetBucket()), n)
		}
	}
}

func labels(m *dto.Metric) (out []string) {
	for _, l := range m.GetLabel() {
		out = append(out, l.GetName()+"="+l.GetValue())
	}
	return out
}
