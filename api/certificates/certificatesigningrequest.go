package certificates

import (
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
)

type signingRequest = certificatesv1.CertificateSigningRequest

func signingRequestRow(now func() time.Time) resources.Row {
	spec, status := certificatesv1beta1.CertificateSigningRequestSpec{}.SwaggerDoc(),
		certificatesv1beta1.CertificateSigningRequestStatus{}.SwaggerDoc()
	approval := resources.Status(approvalStrategy(now).Strategy())
	approval.Name = "approval"
	return resources.Row{
		GVK:      certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest"),
		Resource: "certificatesigningrequests", Singular: "certificatesigningrequest",
		ShortNames:   []string{"csr"},
		StoragePath:  "certificatesigningrequests",
		New:          resources.Make[signingRequest],
		Strategy:     signingRequestStrategy().Strategy(),
		Subresources: []resources.Subresource{approval, resources.Status(signingStrategy(now).Strategy())},
		Fields: resources.Fields(func(r *signingRequest) fields.Set {
			return fields.Set{"spec.signerName": r.Spec.SignerName}
		}),
		FieldNames: []string{"spec.signerName"},
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.AgeColumn(),
			resources.Column("SignerName", spec["signerName"]),
			resources.Column("Requestor", spec["request"]),
			resources.Column("RequestedDuration", spec["expirationSeconds"]),
			resources.Column("Condition", status["conditions"]),
		},
		Cells: resources.Cells(func(r *signingRequest, now time.Time) []any {
			lifetime := "<none>"
			if s := r.Spec.ExpirationSeconds; s != nil {
				lifetime = duration.HumanDuration(time.Duration(*s) * time.Second)
			}
			return []any{r.Name, resources.Age(r.CreationTimestamp, now), r.Spec.SignerName, r.Spec.Username, lifetime,
				StateText(&r.Status)}
		}),
	}
}

// StateText is what became of a request, as tables show it: "Approved,Issued".
func StateText(s *certificatesv1.CertificateSigningRequestStatus) string {
	words := []string{"Pending"}
	switch {
	case Has(s, certificatesv1.CertificateDenied):
		words[0] = "Denied"
	case Has(s, certificatesv1.CertificateApproved):
		words[0] = "Approved"
	}
	if Has(s, certificatesv1.CertificateFailed) {
		words = append(words, "Failed")
	}
	if len(s.Certificate) > 0 {
		words = append(words, "Issued")
	}
	return strings.Join(words, ",")
}

// Has reports whether a status has a condition. Those of the known types are never False.
func Has(s *certificatesv1.CertificateSigningRequestStatus, t certificatesv1.RequestConditionType) bool {
	return condition(s, t) != nil
}

// conditions returns the conditions of a type. Earlier versions of the API let in several of a type.
func conditions(s *certificatesv1.CertificateSigningRequestStatus,
	t certificatesv1.RequestConditionType) (found []certificatesv1.CertificateSigningRequestCondition) {
	for _, c := range s.Conditions {
		if c.Type == t {
			found = append(found, c)
		}
	}
	return found
}

func condition(s *certificatesv1.CertificateSigningRequestStatus,
	t certificatesv1.RequestConditionType) *certificatesv1.CertificateSigningRequestCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == t {
			return &s.Conditions[i]
		}
	}
	return nil
}

// signingRequestStrategy: a request does not change once it is made. Who made it is noted by the server's package
// requester.
func signingRequestStrategy() resources.Typed[*signingRequest] {
	return resources.Typed[*signingRequest]{
		PrepareCreate: func(r *signingRequest) { r.Status = certificatesv1.CertificateSigningRequestStatus{} },
		PrepareUpdate: func(obj, old *signingRequest) {
			obj.Spec, obj.Status = *old.Spec.DeepCopy(), *old.Status.DeepCopy()
		},
		Validate:       validateNew,
		ValidateUpdate: func(obj, old *signingRequest) field.ErrorList { return validateChange(obj, old, false) },
		ValidateName:   path.ValidatePathSegmentName,
		Resets:         []string{"spec.username", "spec.uid", "spec.groups", "spec.extra", "status"},
	}
}

// approvalStrategy writes all of the conditions, and no certificate.
func approvalStrategy(now func() time.Time) resources.Typed[*signingRequest] {
	s := signingRequestStrategy()
	s.PrepareUpdate = func(obj, old *signingRequest) {
		obj.Spec, obj.Status.Certificate = *old.Spec.DeepCopy(), old.Status.Certificate
		stamp(&obj.Status, &old.Status, now)
	}
	s.ValidateUpdate = func(obj, old *signingRequest) field.ErrorList { return validateChange(obj, old, true) }
	s.Resets = []string{"spec", "status.certificate"}
	return s
}

// signingStrategy writes the certificate and the conditions, except for what the conditions Approved and Denied say.
func signingStrategy(now func() time.Time) resources.Typed[*signingRequest] {
	s := signingRequestStrategy()
	s.PrepareUpdate = func(obj, old *signingRequest) {
		obj.Spec = *old.Spec.DeepCopy()
		restoreDecisions(&obj.Status, &old.Status)
		stamp(&obj.Status, &old.Status, now)
	}
	s.Resets = []string{"spec"}
	return s
}

// restoreDecisions puts old's decisions where s has decisions of the same type: the first of a type for the first, the
// second for the second. Decisions that old does not have stay, for the validation to refuse.
func restoreDecisions(s, old *certificatesv1.CertificateSigningRequestStatus) {
	seen := map[certificatesv1.RequestConditionType]int{}
	for i := range s.Conditions {
		t := s.Conditions[i].Type
		if had := conditions(old, t); decision(t) && seen[t] < len(had) {
			s.Conditions[i] = had[seen[t]]
		}
		seen[t]++
	}
}

// decision reports whether conditions of this type are written by who approves requests, and not by who signs them.
func decision(t certificatesv1.RequestConditionType) bool {
	return t == certificatesv1.CertificateApproved || t == certificatesv1.CertificateDenied
}

// stamp gives conditions their times where the client left them out. One that keeps its status keeps the time of its
// transition.
func stamp(s, old *certificatesv1.CertificateSigningRequestStatus, now func() time.Time) {
	if now == nil {
		return
	}
	at := metav1.NewTime(now())
	for i := range s.Conditions {
		c := &s.Conditions[i]
		if c.LastUpdateTime.IsZero() {
			c.LastUpdateTime = at
		}
		if !c.LastTransitionTime.IsZero() {
			continue
		}
		c.LastTransitionTime = at
		if was := condition(old, c.Type); was != nil && was.Status == c.Status && !was.LastTransitionTime.IsZero() {
			c.LastTransitionTime = was.LastTransitionTime
		}
	}
}

// SetCondition adds a condition that is true, at the given time.
func SetCondition(s *certificatesv1.CertificateSigningRequestStatus, t certificatesv1.RequestConditionType, reason,
	message string, now time.Time) {
	s.Conditions = append(s.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: t, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastUpdateTime: metav1.NewTime(now),
		LastTransitionTime: metav1.NewTime(now),
	})
}
