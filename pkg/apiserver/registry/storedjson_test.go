package registry_test

import (
	"context"
	"strings"
	"testing"

	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"bonsai/api/resources"
	"bonsai/api/resources/rows"
	"bonsai/pkg/apiserver/registry"
)

// storedService is how a real kube-apiserver v1.36.3 stores an APIService.
const storedService = `{"kind":"APIService","apiVersion":"apiregistration.k8s.io/v1","metadata":{"name":"v1.apps","uid":"5f1e0d44-6c31-4c5a-8d9a-27d2a1f8a1c1","creationTimestamp":"2026-11-29T02:27:20Z","labels":{"kube-aggregator.kubernetes.io/automanaged":"onstart"}},"spec":{"group":"apps","version":"v1","groupPriorityMinimum":17800,"versionPriority":15},"status":{"conditions":[{"type":"Available","status":"True","lastTransitionTime":"2026-11-29T02:27:20Z","reason":"Local","message":"Local APIServices are always available"}]}}` + "\n"

func serviceRow(t *testing.T) *resources.Row {
	t.Helper()
	all := rows.All()
	for i := range all {
		if all[i].Resource == "apiservices" {
			return &all[i]
		}
	}
	t.Fatal("no row")
	return nil
}

// reversed is a transformer that turns values around.
type reversed struct{}

func (reversed) Seal(_ context.Context, _, value []byte) ([]byte, error) { return turn(value), nil }

func (reversed) Open(_ context.Context, _, stored []byte) ([]byte, bool, error) {
	return turn(stored), false, nil
}

func (reversed) AtHand([]byte) bool { return false }

func turn(b []byte) []byte {
	out := make([]byte, len(b))
	for i, c := range b {
		out[len(b)-1-i] = c
	}
	return out
}

// TestStoredJSON: what a real server stores as JSON is opened as protobuf, also below encryption, and is stale. What is
// stored as protobuf stays as it is. What is neither shows nothing of itself.
func TestStoredJSON(t *testing.T) {
	t.Parallel()
	row := serviceRow(t)
	codec, ok := registry.NewCodec(row).(*registry.ProtobufCodec)
	if !ok {
		t.Fatal("APIServices are not stored as protobuf")
	}
	reader := registry.NewStoredJSON(codec, nil)
	plain, sealed := reader.Around(nil), reader.Around(reversed{})
	value, stale, err := plain.Open(t.Context(), nil, []byte(storedService))
	if err != nil || !stale {
		t.Fatal(stale, err)
	}
	obj, err := codec.Decode(value, 0)
	if err != nil {
		t.Fatal(err)
	}
	if s := obj.(*apiregistrationv1.APIService); s.Name != "v1.apps" || s.Spec.GroupPriorityMinimum != 17800 ||
		len(s.Status.Conditions) != 1 || len(s.Labels) != 1 {
		t.Errorf("%+v", s)
	}
	if again, stale, err := plain.Open(t.Context(), nil, value); err != nil || stale || string(again) != string(value) {
		t.Errorf("protobuf is changed: %t, %v", stale, err)
	}
	if got, stale, err := sealed.Open(t.Context(), nil, turn([]byte(storedService))); err != nil || !stale ||
		string(got) != string(value) {
		t.Errorf("below encryption: %q, %t, %v", got, stale, err)
	}
	if got, err := sealed.Seal(t.Context(), nil, value); err != nil || string(got) != string(turn(value)) {
		t.Errorf("sealed as %q, %v", got, err)
	}
	if !plain.AtHand(nil) || sealed.AtHand(nil) {
		t.Error("a value is at hand if that of the inner transformer is")
	}
	for _, bad := range []string{`{"secret`, `{"kind":"Secret","apiVersion":"v1"}`,
		strings.Replace(storedService, "17800", `"secret"`, 1),
		strings.Replace(storedService, "k8s.io/v1", "k8s.io/v1beta1", 1)} {
		if got, _, err := plain.Open(t.Context(), nil, []byte(bad)); err == nil ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %q, %v", bad, got, err)
		}
	}
}
