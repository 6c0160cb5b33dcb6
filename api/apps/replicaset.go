package apps

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/core"
	"bonsai/api/defaults"
	"bonsai/api/equal"
	"bonsai/api/podspec"
	"bonsai/api/resources"
)

func replicaSetRow() resources.Row {
	spec, status := appsv1.ReplicaSetSpec{}.SwaggerDoc(), appsv1.ReplicaSetStatus{}.SwaggerDoc()
	return resources.Row{
		GVK: appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), Resource: "replicasets", Singular: "replicaset",
		Namespaced:  true,
		ShortNames:  []string{"rs"},
		Categories:  []string{"all"},
		StoragePath: "replicasets",
		New:         resources.Make[appsv1.ReplicaSet],
		Strategy:    replicaSetStrategy().Strategy(),
		Subresources: []resources.Subresource{resources.Scale(),
			resources.Status(replicaSetStatusStrategy().Strategy())},
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.IntColumn("Desired", spec["replicas"]),
			resources.IntColumn("Current", status["replicas"]),
			resources.IntColumn("Ready", status["readyReplicas"]),
			resources.AgeColumn(),
			containersColumn(),
			imagesColumn(),
			resources.Wide(resources.Column("Selector", spec["selector"])),
		},
		Cells: resources.Cells(func(r *appsv1.ReplicaSet, now time.Time) []any {
			names, images := podspec.ContainerTexts(r.Spec.Template.Spec.Containers)
			return []any{r.Name, int64(deref(r.Spec.Replicas)), int64(r.Status.Replicas), int64(r.Status.ReadyReplicas),
				resources.Age(r.CreationTimestamp, now), names, images, selectorText(r.Spec.Selector)}
		}),
	}
}

func replicaSetStrategy() resources.Typed[*appsv1.ReplicaSet] {
	return resources.Typed[*appsv1.ReplicaSet]{
		Default: func(r *appsv1.ReplicaSet) {
			defaults.SetPtr(&r.Spec.Replicas, 1)
			podspec.DefaultTemplate(&r.Spec.Template)
		},
		PrepareCreate: func(r *appsv1.ReplicaSet) { r.Status = appsv1.ReplicaSetStatus{} },
		PrepareUpdate: func(obj, old *appsv1.ReplicaSet) { obj.Status = *old.Status.DeepCopy() },
		Validate:      validateReplicaSet,
		ValidateUpdate: func(obj, old *appsv1.ReplicaSet) field.ErrorList {
			return append(validateReplicaSet(obj),
				apivalidation.ValidateImmutableField(obj.Spec.Selector, old.Spec.Selector, specPath("selector"))...)
		},
		Warnings: func(obj, old *appsv1.ReplicaSet) []string {
			if old == nil {
				return append(podspec.NameWarnings(obj.Name, "Pod names and hostnames"),
					templateWarnings(&obj.Spec.Template)...)
			}
			if obj.Generation == old.Generation {
				return nil
			}
			return templateWarnings(&obj.Spec.Template)
		},
		SpecChanged: func(obj, old *appsv1.ReplicaSet) bool { return !equal.Semantic(&obj.Spec, &old.Spec) },
	}
}

func replicaSetStatusStrategy() resources.Typed[*appsv1.ReplicaSet] {
	s := replicaSetStrategy()
	s.PrepareUpdate = func(obj, old *appsv1.ReplicaSet) { obj.Spec = *old.Spec.DeepCopy() }
	s.ValidateUpdate = func(obj, _ *appsv1.ReplicaSet) field.ErrorList {
		st := &obj.Status
		errs := core.ValidateReplicaStatus(st.Replicas, st.FullyLabeledReplicas, st.ReadyReplicas, st.AvailableReplicas,
			st.ObservedGeneration, field.NewPath("status"))
		return append(errs, apivalidation.ValidateNonnegativeField(int64(deref(st.TerminatingReplicas)),
			field.NewPath("status", "terminatingReplicas"))...)
	}
	s.SpecChanged, s.Warnings = nil, nil
	return s
}

func validateReplicaSet(r *appsv1.ReplicaSet) field.ErrorList {
	path := field.NewPath("spec")
	s := &r.Spec
	errs := apivalidation.ValidateNonnegativeField(int64(deref(s.Replicas)), path.Child("replicas"))
	errs = append(errs, apivalidation.ValidateNonnegativeField(int64(s.MinReadySeconds),
		path.Child("minReadySeconds"))...)
	errs = append(errs, validateSelector(s.Selector, "deployment", path.Child("selector"))...)
	return append(errs, validateReplicated(s.Selector, &s.Template, path)...)
}
