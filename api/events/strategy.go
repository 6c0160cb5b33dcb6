package events

import (
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/core"
	"bonsai/api/resources"
)

// strategy works on the stored events, with the stricter rules of this group.
func strategy() resources.Strategy {
	return resources.Typed[*corev1.Event]{
		Validate:       core.ValidateEvent,
		ValidateUpdate: validateUpdate,
		ValidateName:   apivalidation.NameIsDNSSubdomain,
		CreateOnUpdate: true,
	}.Strategy()
}

// validateUpdate: of an event only its series and metadata may change. Errors name the fields as the core group does,
// which is what Kubernetes does.
func validateUpdate(obj, old *corev1.Event) field.ErrorList {
	var errs field.ErrorList
	was, is := fromCore(old), fromCore(obj)
	for _, f := range []struct {
		name     string
		now, was any
	}{
		{"involvedObject", is.Regarding, was.Regarding},
		{"reason", is.Reason, was.Reason},
		{"message", is.Note, was.Note},
		{"type", is.Type, was.Type},
		{"eventTime", is.EventTime, was.EventTime},
		{"action", is.Action, was.Action},
		{"related", is.Related, was.Related},
		{"reportingController", is.ReportingController, was.ReportingController},
		{"reportingInstance", is.ReportingInstance, was.ReportingInstance},
	} {
		if !apiequality.Semantic.DeepEqual(f.now, f.was) {
			errs = append(errs, field.Invalid(field.NewPath(f.name), f.now, "field is immutable"))
		}
	}
	return append(errs, core.ValidateEventSeries(obj)...)
}
