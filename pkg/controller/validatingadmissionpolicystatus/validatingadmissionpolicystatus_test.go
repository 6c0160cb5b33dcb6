package validatingadmissionpolicystatus_test

import (
	"log/slog"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiclient/admissionregistration"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
	"bonsai/pkg/controller/validatingadmissionpolicystatus"
)

// A policy is checked when it is made, and again when it changes, against what the server says of its kinds.
func TestController(t *testing.T) {
	t.Parallel()
	client := controllertest.Start(t).Client(t)
	deps := controller.Deps{Client: client, Informers: controller.NewInformers(client),
		Log: slog.New(slog.DiscardHandler), Workers: 1, Now: time.Now}
	c, err := validatingadmissionpolicystatus.New(deps)
	if err != nil {
		t.Fatal(err)
	}
	go deps.Informers.Run(t.Context())
	go c.Run(t.Context()) //nolint:errcheck // it ends with the test
	policies := admissionregistration.ValidatingAdmissionPolicies(client)
	p := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
					{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{"*"},
						Rule: admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"},
							Resources: []string{"deployments"}}}}}},
			Validations: []admissionregistrationv1.Validation{{Expression: "object.spec.nope == 1"}}}}
	if p, err = policies.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	warned := func(generation int64, warnings int) func() string {
		return func() string {
			p, err = policies.Get(t.Context(), "", "p")
			switch {
			case err != nil:
				return err.Error()
			case p.Status.ObservedGeneration != generation:
				return "the status is not written"
			}
			got := 0
			if checked := p.Status.TypeChecking; checked != nil { // an empty one goes when the last warning does
				got = len(checked.ExpressionWarnings)
			}
			if got != warnings {
				return "other warnings"
			}
			return ""
		}
	}
	controllertest.Eventually(t, "a warning", warned(1, 1))
	if got := p.Status.TypeChecking.ExpressionWarnings[0].FieldRef; got != "spec.validations[0].expression" {
		t.Error(got)
	}
	p.Spec.Validations[0].Expression = "object.spec.replicas == 1"
	if p, err = policies.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, "no warning", warned(2, 0))
}
