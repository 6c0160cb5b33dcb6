package certificates

import (
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
)

type podRequest = certificatesv1.PodCertificateRequest

// defaultPodLifetime is how long a pod's certificate lives at most, in seconds, if the request does not say.
const defaultPodLifetime = 24 * 60 * 60

func podRequestRow(now func() time.Time) resources.Row {
	spec := certificatesv1.PodCertificateRequestSpec{}.SwaggerDoc()
	return resources.Row{
		GVK:      certificatesv1.SchemeGroupVersion.WithKind("PodCertificateRequest"),
		Resource: "podcertificaterequests", Singular: "podcertificaterequest", Namespaced: true,
		StoragePath:    "podcertificaterequests",
		StorageVersion: certificatesv1beta1.SchemeGroupVersion.Version,
		New:            resources.Make[podRequest],
		Strategy:       podRequestStrategy().Strategy(),
		Subresources:   []resources.Subresource{resources.Status(podRequestStatusStrategy(now).Strategy())},
		Fields: resources.Fields(func(r *podRequest) fields.Set {
			return fields.Set{"spec.signerName": r.Spec.SignerName, "spec.podName": r.Spec.PodName,
				"spec.nodeName": string(r.Spec.NodeName)}
		}),
		FieldNames: []string{"spec.signerName", "spec.podName", "spec.nodeName"},
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.Column("PodName", spec["podName"]),
			resources.Column("ServiceAccountName", spec["serviceAccountName"]),
			resources.Column("NodeName", spec["nodeName"]),
			resources.Column("SignerName", spec["signerName"]),
			resources.Column("State", "Is the request Pending, Issued, Denied, or Failed?"),
			resources.Column("UnverifiedUserAnnotations", spec["unverifiedUserAnnotations"]),
		},
		Cells: resources.Cells(func(r *podRequest, _ time.Time) []any {
			state := "Pending"
			if c := outcome(&r.Status); c != nil {
				state = c.Type
			}
			return []any{r.Name, r.Spec.PodName, r.Spec.ServiceAccountName, string(r.Spec.NodeName),
				r.Spec.SignerName, state, labels.FormatLabels(r.Spec.UnverifiedUserAnnotations)}
		}),
	}
}

// outcome is the condition that ends a request, nil if it is pending.
func outcome(s *certificatesv1.PodCertificateRequestStatus) *metav1.Condition {
	for i := range s.Conditions {
		if ends(s.Conditions[i].Type) {
			return &s.Conditions[i]
		}
	}
	return nil
}

// ends reports whether a condition of this type ends a request.
func ends(condition string) bool {
	switch condition {
	case certificatesv1.PodCertificateRequestConditionTypeIssued,
		certificatesv1.PodCertificateRequestConditionTypeDenied,
		certificatesv1.PodCertificateRequestConditionTypeFailed:
		return true
	}
	return false
}

// podRequestStrategy: a request does not change once it is made.
func podRequestStrategy() resources.Typed[*podRequest] {
	return resources.Typed[*podRequest]{
		Default: func(r *podRequest) {
			if r.Spec.MaxExpirationSeconds == nil {
				r.Spec.MaxExpirationSeconds = new(int32(defaultPodLifetime))
			}
		},
		PrepareCreate: func(r *podRequest) { r.Status = certificatesv1.PodCertificateRequestStatus{} },
		PrepareUpdate: func(obj, old *podRequest) { obj.Status = *old.Status.DeepCopy() },
		Validate:      func(r *podRequest) field.ErrorList { return validatePodRequest(&r.Spec) },
		ValidateUpdate: func(obj, old *podRequest) field.ErrorList {
			return apivalidation.ValidateImmutableField(obj.Spec, old.Spec, field.NewPath("spec"))
		},
		NeedsVersion: true,
	}
}

// podRequestStatusStrategy writes the answer of a signer, once. Who may sign is asked by package signing of the
// server's registry.
func podRequestStatusStrategy(now func() time.Time) resources.Typed[*podRequest] {
	s := podRequestStrategy()
	s.PrepareUpdate = func(obj, old *podRequest) {
		obj.Spec = *old.Spec.DeepCopy()
		metav1.ResetObjectMetaForStatus(&obj.ObjectMeta, &old.ObjectMeta)
	}
	s.Resets = []string{"spec", "metadata"}
	s.ValidateUpdate = func(obj, old *podRequest) field.ErrorList { return validateAnswer(obj, old, now) }
	return s
}
