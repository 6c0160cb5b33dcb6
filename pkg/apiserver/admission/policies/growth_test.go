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
	h := newHouse(t, append(objects, manyParameters(300)...)...)
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
}

// The answer names some of the failures under many parameters, not all.
func TestRefusalOfManyParams(t *testing.T) {
	t.Parallel()
	const most = 100
	objects := mutating("m", "pods", `[JSONPatch{op: "add", path: "/metadata/labels/x", value: params.data.nope}]`)
	of := withParams(admissionregistrationv1.Deny)
	objects[0].(*admissionregistrationv1.MutatingAdmissionPolicy).Spec.ParamKind =
		of[0].(*admissionregistrationv1.ValidatingAdmissionPolicy).Spec.ParamKind
	objects[1].(*admissionregistrationv1.MutatingAdmissionPolicyBinding).Spec.ParamRef =
		of[1].(*admissionregistrationv1.ValidatingAdmissionPolicyBinding).Spec.ParamRef
	h := newHouse(t, append(objects, manyParameters(2*most)...)...)
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
