package autoscaling

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
)

// pair is one autoscaler in both versions, as JSON.
type pair struct{ Stored, V1 json.RawMessage }

// recorded are answers of kube-apiserver v1.36.3: what was stored read as v1, and what was written as v1 read as it is
// stored.
func recorded(t *testing.T) (toV1, fromV1 []pair) {
	t.Helper()
	raw, err := os.ReadFile("testdata/v1.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ ToV1, FromV1 []pair }
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	if len(all.ToV1) == 0 || len(all.FromV1) == 0 {
		t.Fatal("nothing recorded")
	}
	return all.ToV1, all.FromV1
}

func decode[T any](t *testing.T, raw []byte) *T {
	t.Helper()
	out := new(T)
	if err := json.Unmarshal(raw, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// tree is a value as JSON without Go's types.
func tree(t *testing.T, v any) any {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestToV1(t *testing.T) {
	t.Parallel()
	cases, _ := recorded(t)
	for i, c := range cases {
		stored := decode[autoscaler](t, c.Stored)
		before := stored.DeepCopy()
		if diff := cmp.Diff(tree(t, c.V1), tree(t, toV1(stored))); diff != "" {
			t.Errorf("case %d: %s", i, diff)
		}
		if diff := cmp.Diff(before, stored); diff != "" {
			t.Errorf("case %d: the stored object has changed: %s", i, diff)
		}
	}
}

func TestFromV1(t *testing.T) {
	t.Parallel()
	_, cases := recorded(t)
	for i, c := range cases {
		got := fromV1(decode[autoscalingv1.HorizontalPodAutoscaler](t, c.V1))
		setDefaults(got)
		if diff := cmp.Diff(tree(t, c.Stored), tree(t, got)); diff != "" {
			t.Errorf("case %d: %s", i, diff)
		}
	}
}
