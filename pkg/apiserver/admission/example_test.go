package admission_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiserver/admission"
)

// team is a plug-in that Kubernetes does not have: every new ConfigMap names the team that it belongs to.
type team struct{}

// Validate implements admission.Validator.
func (team) Validate(_ context.Context, a *admission.Attributes) error {
	cm, ok := a.Object.(*corev1.ConfigMap)
	if ok && a.Operation == admission.Create && cm.Labels["team"] == "" {
		return admission.Forbid(a, "the label team is missing")
	}
	return nil
}

// A plug-in of one's own has a Place, which says after which plug-in it runs and whether it is on by default. In the
// server, it is added to the list of pkg/apiserver/assemble/admission.go, and --enable-admission-plugins=Team switches
// it on.
func Example() {
	available := []admission.Plugin{
		{Name: "Priority"},
		{Name: "LimitRanger"},
		{Name: "Team", Validator: team{}, Place: &admission.Place{After: "LimitRanger"}},
	}
	off, err := admission.Select(available, nil, nil)
	fmt.Println(admission.NewChain(off...).Names(), err)

	on, err := admission.Select(available, []string{"Team"}, nil)
	chain := admission.NewChain(on...)
	fmt.Println(chain.Names(), err)

	create := func(labels map[string]string) error {
		return chain.Validate(context.Background(), &admission.Attributes{Operation: admission.Create,
			Resource: corev1.SchemeGroupVersion.WithResource("configmaps"), Namespace: "default", Name: "a",
			Object: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: labels}}})
	}
	fmt.Println(create(nil))
	fmt.Println(create(map[string]string{"team": "green"}))
	// Output:
	// [LimitRanger Priority] <nil>
	// [LimitRanger Team Priority] <nil>
	// configmaps "a" is forbidden: the label team is missing
	// <nil>
}
