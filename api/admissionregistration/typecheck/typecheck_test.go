package typecheck_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"bonsai/api/admissionregistration/typecheck"
	"bonsai/api/openapi"
	"bonsai/api/resources"
	"bonsai/api/resources/rows"
	"bonsai/api/scheme"
)

// ours is what our API server serves.
type ours struct{ rows []resources.Row }

func (o ours) Kinds(gvr schema.GroupVersionResource) []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for i := range o.rows {
		if r := &o.rows[i]; r.Resource == gvr.Resource && (gvr.Group == "" || r.GVK.Group == gvr.Group) &&
			r.GVK.Version == gvr.Version {
			out = append(out, r.GVK)
		}
	}
	return out
}

func (o ours) Schemas(gv schema.GroupVersion) (map[string]*spec.Schema, error) {
	b := openapi.NewBuilder(scheme.New(), openapi.V3)
	for i := range o.rows {
		if o.rows[i].GVK.GroupVersion() == gv {
			if _, err := b.Add(o.rows[i].GVK); err != nil {
				return nil, err
			}
		}
	}
	out := map[string]*spec.Schema{}
	for name, s := range b.Definitions() {
		out[name] = &s
	}
	return out, nil
}

// TestReplay: what a real kube-controller-manager v1.36.3 wrote into the status of policies.
func TestReplay(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/policies.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct {
		Policies map[string]admissionregistrationv1.ValidatingAdmissionPolicySpec
		Status   map[string]admissionregistrationv1.ValidatingAdmissionPolicyStatus
	}
	if err := json.Unmarshal(raw, &recorded); err != nil {
		t.Fatal(err)
	}
	for name, s := range recorded.Policies {
		got, err := typecheck.Check(&admissionregistrationv1.ValidatingAdmissionPolicy{Spec: s}, ours{rows.All()})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(recorded.Status[name].TypeChecking.ExpressionWarnings, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}
