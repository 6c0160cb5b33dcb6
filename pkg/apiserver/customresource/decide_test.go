package customresource

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func at(second int64) time.Time { return time.Unix(1_700_000_000+second, 0).UTC() }

func conditions(crd *v1.CustomResourceDefinition) []string {
	var out []string
	for _, c := range crd.Status.Conditions {
		out = append(out, fmt.Sprintf("%s=%s %s: %s @%d", c.Type, c.Status, c.Reason, c.Message,
			c.LastTransitionTime.Unix()-at(0).Unix()))
	}
	return out
}

// TestDecide goes with a definition through its life. The reasons and messages are a real kube-apiserver's.
func TestDecide(t *testing.T) {
	t.Parallel()
	crd := &v1.CustomResourceDefinition{}
	crd.Name, crd.Spec.Group, crd.Spec.Names = "bs.example.com", "example.com", named("bs", "b", "B", "BList", "x")
	other := []v1.CustomResourceDefinitionNames{named("as", "a", "A", "AList", "x")}
	step := func(what string, second int64, nonStructural string, others []v1.CustomResourceDefinitionNames,
		serves bool, want ...string) {
		t.Helper()
		decide(crd, nonStructural, others, serves, metav1.NewTime(at(second)))
		if got := conditions(crd); !slices.Equal(got, want) {
			t.Errorf("%s: %q", what, got)
		}
	}
	step("a name is taken", 1, "", other, true, `NamesAccepted=False ShortNamesConflict: "x" is already in use @1`,
		"Established=False NotAccepted: not all names are accepted @1")
	step("and still is", 2, "", other, true, `NamesAccepted=False ShortNamesConflict: "x" is already in use @1`,
		"Established=False NotAccepted: not all names are accepted @1")
	if servable(crd) {
		t.Error("it would be served without its names")
	}
	step("it is free", 3, "", nil, false, "NamesAccepted=True NoConflicts: no conflicts found @3",
		"Established=False Installing: the initial names have been accepted @1")
	if !servable(crd) {
		t.Error("it would not be served")
	}
	step("it is served", 4, "", nil, true, "NamesAccepted=True NoConflicts: no conflicts found @3",
		"Established=True InitialNamesAccepted: the initial names have been accepted @4")
	crd.Spec.Names.ShortNames = []string{"y"}
	step("it wants another name", 5, "", []v1.CustomResourceDefinitionNames{named("as", "a", "A", "AList", "y")}, false,
		`NamesAccepted=False ShortNamesConflict: "y" is already in use @5`,
		"Established=True InitialNamesAccepted: the initial names have been accepted @4")
	if got := crd.Status.AcceptedNames.ShortNames; !slices.Equal(got, []string{"x"}) || !servable(crd) {
		t.Errorf("it has %q", got)
	}
	crd.Spec.Names.ShortNames = []string{"x"}
	step("its schema is no good", 6, "spec.bad", nil, true, "NamesAccepted=True NoConflicts: no conflicts found @6",
		"Established=True InitialNamesAccepted: the initial names have been accepted @4",
		"NonStructuralSchema=True Violations: spec.bad @6")
	step("its schema is good", 7, "", nil, true, "NamesAccepted=True NoConflicts: no conflicts found @6",
		"Established=True InitialNamesAccepted: the initial names have been accepted @4")
	crd.Spec.Group, crd.Annotations = "example.k8s.io",
		map[string]string{v1.KubeAPIApprovedAnnotation: "unapproved, testing"}
	step("a protected group", 8, "", nil, true, "NamesAccepted=True NoConflicts: no conflicts found @6",
		"Established=True InitialNamesAccepted: the initial names have been accepted @4",
		`KubernetesAPIApprovalPolicyConformant=False UnapprovedAnnotation: not approved: "unapproved, testing" @8`)
}
