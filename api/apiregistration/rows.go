// Package apiregistration holds what we know of the kind of the group apiregistration.k8s.io (v1): its row, defaults,
// validation and table columns, the words of its condition, and the places of the groups that Kubernetes serves itself,
// as pure functions.
package apiregistration

import (
	"time"

	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"bonsai/api/defaults"
	"bonsai/api/resources"
)

// Rows returns the resources of the group. now is the clock of the condition that a local APIService is made with; nil
// leaves it to who writes the status.
func Rows(now func() time.Time) []resources.Row {
	return []resources.Row{{
		GVK: v1.SchemeGroupVersion.WithKind("APIService"), Resource: "apiservices", Singular: "apiservice",
		PlainFinalizers: true,
		Categories:      []string{"api-extensions"},
		StoragePath:     "apiregistration.k8s.io/apiservices",
		New:             resources.Make[v1.APIService],
		Strategy: resources.Typed[*v1.APIService]{
			Default: setDefaults,
			PrepareCreate: func(s *v1.APIService) {
				s.Status = v1.APIServiceStatus{}
				if s.Spec.Service == nil && now != nil {
					SetCondition(s, Local(), now())
				}
			},
			PrepareUpdate:  func(s, old *v1.APIService) { s.Status = old.Status },
			Validate:       validateService,
			ValidateUpdate: func(s, _ *v1.APIService) field.ErrorList { return validateService(s) },
			ValidateName:   path.ValidatePathSegmentName,
			NeedsVersion:   true,
		}.Strategy(),
		Subresources: []resources.Subresource{resources.Status(resources.Typed[*v1.APIService]{
			Default: setDefaults,
			PrepareUpdate: func(s, old *v1.APIService) {
				s.Spec, s.Labels, s.Annotations, s.Finalizers, s.OwnerReferences = old.Spec, old.Labels,
					old.Annotations, old.Finalizers, old.OwnerReferences
			},
			ValidateUpdate: func(s, _ *v1.APIService) field.ErrorList { return validateStatus(s) },
			Resets:         []string{"spec", "metadata"},
			NeedsVersion:   true,
		}.Strategy())},
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.Column("Service", "The reference to the service that hosts this API endpoint."),
			resources.Column("Available", "Whether this service is available."),
			resources.AgeColumn(),
		},
		Cells: resources.Cells(func(s *v1.APIService, now time.Time) []any {
			return []any{s.Name, service(s), available(s), resources.Age(s.CreationTimestamp, now)}
		}),
	}}
}

// setDefaults is idempotent.
func setDefaults(s *v1.APIService) {
	if s.Spec.Service != nil {
		defaults.SetPtr(&s.Spec.Service.Port, int32(443))
	}
}

// service is the column of that name.
func service(s *v1.APIService) string {
	if s.Spec.Service == nil {
		return "Local"
	}
	return s.Spec.Service.Namespace + "/" + s.Spec.Service.Name
}

// available is the column of that name: the status of the condition, and if that is not True, why.
func available(s *v1.APIService) string {
	c := Condition(s)
	switch {
	case c == nil:
		return string(v1.ConditionUnknown)
	case c.Status == v1.ConditionTrue:
		return string(c.Status)
	}
	return string(c.Status) + " (" + c.Reason + ")"
}
