package core

import (
	"maps"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"bonsai/api/defaults"
	"bonsai/api/podspec"
	"bonsai/api/resources"
)

func replicationControllerRow() resources.Row {
	spec, status := corev1.ReplicationControllerSpec{}.SwaggerDoc(), corev1.ReplicationControllerStatus{}.SwaggerDoc()
	return resources.Row{
		GVK: corev1.SchemeGroupVersion.WithKind("ReplicationController"), Resource: "replicationcontrollers",
		Singular:     "replicationcontroller",
		Namespaced:   true,
		ShortNames:   []string{"rc"},
		Categories:   []string{"all"},
		StoragePath:  "controllers",
		New:          resources.Make[corev1.ReplicationController],
		Strategy:     rcStrategy().Strategy(),
		Subresources: []resources.Subresource{resources.Scale(), resources.Status(rcStatusStrategy().Strategy())},
		FieldNames:   []string{"status.replicas"},
		Fields: resources.Fields(func(r *corev1.ReplicationController) fields.Set {
			return fields.Set{"status.replicas": strconv.Itoa(int(r.Status.Replicas))}
		}),
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.IntColumn("Desired", spec["replicas"]),
			resources.IntColumn("Current", status["replicas"]),
			resources.IntColumn("Ready", status["readyReplicas"]),
			resources.AgeColumn(),
			resources.Wide(resources.Column("Containers", "Names of each container in the template.")),
			resources.Wide(resources.Column("Images", "Images referenced by each container in the template.")),
			resources.Wide(resources.Column("Selector", spec["selector"])),
		},
		Cells: resources.Cells(func(r *corev1.ReplicationController, now time.Time) []any {
			var names, images string
			if r.Spec.Template != nil {
				names, images = podspec.ContainerTexts(r.Spec.Template.Spec.Containers)
			}
			return []any{r.Name, int64(ptr.Deref(r.Spec.Replicas, 0)), int64(r.Status.Replicas),
				int64(r.Status.ReadyReplicas),
				resources.Age(r.CreationTimestamp, now), names, images, SelectorText(r.Spec.Selector)}
		}),
	}
}

func rcStrategy() resources.Typed[*corev1.ReplicationController] {
	return resources.Typed[*corev1.ReplicationController]{
		Default:       defaultRC,
		PrepareCreate: func(r *corev1.ReplicationController) { r.Status = corev1.ReplicationControllerStatus{} },
		PrepareUpdate: func(obj, old *corev1.ReplicationController) { obj.Status = *old.Status.DeepCopy() },
		Validate:      validateRC,
		ValidateUpdate: func(obj, _ *corev1.ReplicationController) field.ErrorList {
			return validateRC(obj)
		},
		Warnings: func(obj, old *corev1.ReplicationController) []string {
			var w []string
			if old == nil {
				w = podspec.NameWarnings(obj.Name, "Pod names and hostnames")
			}
			if obj.Spec.Template == nil || old != nil && apiequality.Semantic.DeepEqual(obj.Spec, old.Spec) {
				return w
			}
			return append(w, podspec.Warnings(&obj.Spec.Template.Spec, obj.Spec.Template.Annotations,
				field.NewPath("spec", "template"))...)
		},
		ValidateName: apivalidation.NameIsDNSSubdomain,
		SpecChanged: func(obj, old *corev1.ReplicationController) bool {
			return !apiequality.Semantic.DeepEqual(obj.Spec, old.Spec)
		},
		DefaultOrphan: true,
	}
}

func rcStatusStrategy() resources.Typed[*corev1.ReplicationController] {
	s := rcStrategy()
	s.PrepareUpdate = func(obj, old *corev1.ReplicationController) { obj.Spec = *old.Spec.DeepCopy() }
	s.ValidateUpdate = func(obj, _ *corev1.ReplicationController) field.ErrorList {
		st := obj.Status
		return ValidateReplicaStatus(st.Replicas, st.FullyLabeledReplicas, st.ReadyReplicas, st.AvailableReplicas,
			st.ObservedGeneration, field.NewPath("status"))
	}
	s.SpecChanged, s.Warnings = nil, nil
	return s
}

// ValidateReplicaStatus checks the counts of a replica controller's status against one another.
func ValidateReplicaStatus(all, labeled, ready, available int32, generation int64, path *field.Path) field.ErrorList {
	errs := apivalidation.ValidateNonnegativeField(int64(all), path.Child("replicas"))
	errs = append(errs, apivalidation.ValidateNonnegativeField(int64(labeled), path.Child("fullyLabeledReplicas"))...)
	errs = append(errs, apivalidation.ValidateNonnegativeField(int64(ready), path.Child("readyReplicas"))...)
	errs = append(errs, apivalidation.ValidateNonnegativeField(int64(available), path.Child("availableReplicas"))...)
	errs = append(errs, apivalidation.ValidateNonnegativeField(generation, path.Child("observedGeneration"))...)
	if labeled > all {
		errs = append(errs, field.Invalid(path.Child("fullyLabeledReplicas"), labeled,
			"cannot be greater than status.replicas"))
	}
	if ready > all {
		errs = append(errs, field.Invalid(path.Child("readyReplicas"), ready, "cannot be greater than status.replicas"))
	}
	if available > all {
		errs = append(errs, field.Invalid(path.Child("availableReplicas"), available,
			"cannot be greater than status.replicas"))
	}
	if available > ready {
		errs = append(errs, field.Invalid(path.Child("availableReplicas"), available,
			"cannot be greater than readyReplicas"))
	}
	return errs
}

// defaultRC takes a missing selector and missing labels from the template.
func defaultRC(r *corev1.ReplicationController) {
	defaults.SetPtr(&r.Spec.Replicas, 1)
	if r.Spec.Template == nil {
		return
	}
	podspec.DefaultTemplate(r.Spec.Template)
	if l := r.Spec.Template.Labels; l != nil {
		if len(r.Spec.Selector) == 0 {
			r.Spec.Selector = maps.Clone(l)
		}
		if len(r.Labels) == 0 {
			r.Labels = maps.Clone(l)
		}
	}
}

func validateRC(r *corev1.ReplicationController) field.ErrorList {
	path := field.NewPath("spec")
	errs := apivalidation.ValidateNonnegativeField(int64(r.Spec.MinReadySeconds), path.Child("minReadySeconds"))
	if len(r.Spec.Selector) == 0 {
		errs = append(errs, field.Required(path.Child("selector"), ""))
	}
	if r.Spec.Replicas == nil {
		errs = append(errs, field.Required(path.Child("replicas"), ""))
	} else {
		errs = append(errs, apivalidation.ValidateNonnegativeField(int64(*r.Spec.Replicas), path.Child("replicas"))...)
	}
	t, at := r.Spec.Template, path.Child("template")
	if t == nil {
		return append(errs, field.Required(at, ""))
	}
	if s := labels.SelectorFromSet(r.Spec.Selector); !s.Empty() && !s.Matches(labels.Set(t.Labels)) {
		errs = append(errs, field.Invalid(at.Child("metadata", "labels"), t.Labels,
			"`selector` does not match template `labels`"))
	}
	errs = append(errs, podspec.ValidateTemplate(t, at)...)
	return append(errs, podspec.RunsForever(t, "ReplicationController", at.Child("spec"))...)
}
