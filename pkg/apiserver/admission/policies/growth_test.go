package policies_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/request"
)

// heard is an audit that keeps the annotations alone.
type heard struct {
	request.Audit
	annotations map[string]string
}

func (h heard) Annotate(key, value string) { h.annotations[key] = value }

// manyParameters are n ConfigMaps that do not hold.
func manyParameters(n int) (all []runtime.Object) {
	for i := range n {
		all = append(all, parameter(fmt.Sprintf("p%04d", i), "no"))
	}
	return all
}

// Many parameters do not make the audit annotations so large that the audit log leaves them out: the first ones stay.
func TestAuditOfManyParams(t *testing.T) {
	t.Parallel()
	const most = 80 << 10
	objects := withParams(admissionregistrationv1.Audit)
	spec := &objects[0].(*admissionregistrationv1.ValidatingAdmissionPolicy).Spec
	spec.Validations[0].MessageExpression = "params.metadata.name + '" + strings.Repeat("x", 4000) + "'"
	spec.AuditAnnotations = []admissionregistrationv1.AuditAnnotation{
		{Key: "note", ValueExpression: spec.Validations[0].MessageExpression}}
	// Those of one policy do not hide what a later one finds.
	later := validating("z", "pods", "false")
	later[1].(*admissionregistrationv1.ValidatingAdmissionPolicyBinding).Spec.ValidationActions =
		[]admissionregistrationv1.ValidationAction{admissionregistrationv1.Audit}
	h := newHouse(t, slices.Concat(objects, later, manyParameters(300))...)
	audit := heard{annotations: map[string]string{}}
	ctx := request.WithInfo(t.Context(), &request.Info{Audit: audit})
	if _, err := h.create(ctx); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"validation.policy.admission.k8s.io/validation_failure", "v/note"} {
		if text := audit.annotations[key]; len(text) > most || !strings.Contains(text, "p0000xxx") {
			t.Errorf("%s has %d bytes: %.50s", key, len(text), text)
		}
	}
	if text := audit.annotations["validation.policy.admission.k8s.io/validation_failure"]; !strings.Contains(text,
		`"policy":"z"`) {
		t.Errorf("the failure of another policy is missing: %.50s", text)
	}
	if audit.annotations["audit.k8s.io/truncated"] != "true" {
		t.Error("the event does not say that something is missing")
	}
}

// failingMutation is a mutating policy that fails under each of withParams' parameters.
func failingMutation() []runtime.Object {
	objects := mutating("m", "pods", `[JSONPatch{op: "add", path: "/metadata/labels/x", value: params.data.nope}]`)
	of := withParams(admissionregistrationv1.Deny)
	objects[0].(*admissionregistrationv1.MutatingAdmissionPolicy).Spec.ParamKind =
		of[0].(*admissionregistrationv1.ValidatingAdmissionPolicy).Spec.ParamKind
	objects[1].(*admissionregistrationv1.MutatingAdmissionPolicyBinding).Spec.ParamRef =
		of[1].(*admissionregistrationv1.ValidatingAdmissionPolicyBinding).Spec.ParamRef
	return objects
}

// The answer names some of the failures under many parameters, not all.
func TestRefusalOfManyParams(t *testing.T) {
	t.Parallel()
	const most = 100
	h := newHouse(t, append(failingMutation(), manyParameters(2*most)...)...)
	_, err := h.create(t.Context())
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		t.Fatal(err)
	}
	causes := status.Status().Details.Causes
	if len(causes) > most || !slices.ContainsFunc(causes, func(c metav1.StatusCause) bool {
		return strings.Contains(c.Message, "no such key: nope")
	}) {
		t.Errorf("%d causes: %v", len(causes), err)
	}
}

// A policy that fails under many parameters is logged once for a request, and again for the next one.
func TestLogOfManyParams(t *testing.T) {
	t.Parallel()
	ignore := admissionregistrationv1.Ignore
	conditions := []admissionregistrationv1.MatchCondition{{Name: "c", Expression: "params.data.nope == 'x'"}}
	for name, c := range map[string]struct {
		objects func() []runtime.Object
		text    string
	}{
		"mutation": {func() []runtime.Object {
			objects := failingMutation()
			objects[0].(*admissionregistrationv1.MutatingAdmissionPolicy).Spec.FailurePolicy = &ignore
			return objects
		}, "a policy cannot be evaluated and is left out"},
		"match conditions": {func() []runtime.Object {
			objects := withParams(admissionregistrationv1.Deny)
			spec := &objects[0].(*admissionregistrationv1.ValidatingAdmissionPolicy).Spec
			spec.FailurePolicy, spec.MatchConditions = &ignore, conditions
			return objects
		}, "match conditions cannot be evaluated, who has them is left out"},
		"message": {func() []runtime.Object {
			objects := withParams(admissionregistrationv1.Audit)
			spec := &objects[0].(*admissionregistrationv1.ValidatingAdmissionPolicy).Spec
			spec.Validations[0].MessageExpression = "string(params.data.nope)"
			return objects
		}, "a messageExpression cannot be evaluated"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, append(c.objects(), manyParameters(10)...)...)
			for request := 1; request <= 2; request++ {
				if _, err := h.create(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := h.logged.count(c.text); got != request {
					t.Errorf("%d lines after %d requests", got, request)
				}
			}
		})
	}
}
