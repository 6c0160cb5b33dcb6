package resource

import (
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
	"bonsai/api/validate"
)

func deviceTaintRuleRow(now func() time.Time) resources.Row {
	doc := resourcev1.DeviceTaint{}.SwaggerDoc()
	return resources.Row{
		GVK: resourcev1.SchemeGroupVersion.WithKind("DeviceTaintRule"), Resource: "devicetaintrules",
		Singular:       "devicetaintrule",
		StoragePath:    "devicetaintrules",
		StorageVersion: resourcev1beta2.SchemeGroupVersion.Version,
		New:            resources.Make[resourcev1.DeviceTaintRule],
		Strategy:       deviceTaintRuleStrategy(now).Strategy(),
		Subresources:   []resources.Subresource{resources.Status(deviceTaintRuleStatusStrategy().Strategy())},
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.Column("Key", doc["key"]),
			resources.Column("Value", doc["value"]),
			resources.Column("Effect", doc["effect"]),
			resources.Column("TimeAdded", doc["timeAdded"]),
			resources.AgeColumn(),
		},
		Cells: resources.Cells(func(r *resourcev1.DeviceTaintRule, now time.Time) []any {
			taint, added := r.Spec.Taint, metav1.Time{}
			if taint.TimeAdded != nil {
				added = *taint.TimeAdded
			}
			return []any{r.Name, taint.Key, taint.Value, string(taint.Effect), resources.Age(added, now),
				resources.Age(r.CreationTimestamp, now)}
		}),
	}
}

func deviceTaintRuleStrategy(now func() time.Time) resources.Typed[*resourcev1.DeviceTaintRule] {
	return resources.Typed[*resourcev1.DeviceTaintRule]{
		NeedsVersion: true,
		PrepareCreate: func(r *resourcev1.DeviceTaintRule) {
			r.Status = resourcev1.DeviceTaintRuleStatus{}
			setRuleTime(r, nil, now)
		},
		PrepareUpdate: func(obj, old *resourcev1.DeviceTaintRule) {
			obj.Status = *old.Status.DeepCopy()
			setRuleTime(obj, old, now)
		},
		Validate: validateRule,
		ValidateUpdate: func(obj, _ *resourcev1.DeviceTaintRule) field.ErrorList {
			return validateRule(obj)
		},
		SpecChanged: func(obj, old *resourcev1.DeviceTaintRule) bool {
			return !apiequality.Semantic.DeepEqual(obj.Spec, old.Spec)
		},
	}
}

func deviceTaintRuleStatusStrategy() resources.Typed[*resourcev1.DeviceTaintRule] {
	return resources.Typed[*resourcev1.DeviceTaintRule]{
		NeedsVersion: true,
		PrepareUpdate: func(obj, old *resourcev1.DeviceTaintRule) {
			obj.Spec = *old.Spec.DeepCopy()
			metav1.ResetObjectMetaForStatus(&obj.ObjectMeta, &old.ObjectMeta)
		},
		Resets: []string{"spec", "metadata"},
		ValidateUpdate: func(obj, _ *resourcev1.DeviceTaintRule) field.ErrorList {
			path, has := field.NewPath("status", "conditions"), obj.Status.Conditions
			return append(metavalidation.ValidateConditions(has, path),
				bound(path, len(has), resourcev1.DeviceTaintRuleStatusMaxConditions)...)
		},
	}
}

// setRuleTime says since when a rule has its effect, if its writer did not: who changes the effect and leaves the time
// did not. old is nil for a new rule.
func setRuleTime(r, old *resourcev1.DeviceTaintRule, now func() time.Time) {
	t := &r.Spec.Taint
	stale := old != nil && t.Effect != old.Spec.Taint.Effect && t.TimeAdded.Equal(old.Spec.Taint.TimeAdded)
	if now != nil && (t.TimeAdded == nil || stale) {
		at := metav1.NewTime(now()).Rfc3339Copy()
		t.TimeAdded = &at
	}
}

func validateRule(r *resourcev1.DeviceTaintRule) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec")
	if s := r.Spec.DeviceSelector; s != nil {
		at := path.Child("deviceSelector")
		if s.Driver != nil {
			errs = append(errs, validateDriver(*s.Driver, at.Child("driver"))...)
		}
		if s.Pool != nil {
			errs = append(errs, validatePoolName(*s.Pool, at.Child("pool"))...)
		}
		if s.Device != nil {
			errs = append(errs, validate.Invalid(at.Child("device"), *s.Device,
				validation.IsDNS1123Label(*s.Device))...)
		}
	}
	return append(errs, validateTaint(&r.Spec.Taint, path.Child("taint"))...)
}

func validateTaint(t *resourcev1.DeviceTaint, path *field.Path) field.ErrorList {
	errs := metavalidation.ValidateLabelName(t.Key, path.Child("key"))
	errs = append(errs, validate.Invalid(path.Child("value"), t.Value, validation.IsValidLabelValue(t.Value))...)
	return append(errs, validateEffect(t.Effect, path.Child("effect"))...)
}
