package apps

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"bonsai/api/defaults"
	"bonsai/api/equal"
	"bonsai/api/podspec"
	"bonsai/api/resources"
)

func deploymentRow() resources.Row {
	status := appsv1.DeploymentStatus{}.SwaggerDoc()
	return resources.Row{
		GVK: appsv1.SchemeGroupVersion.WithKind("Deployment"), Resource: "deployments", Singular: "deployment",
		Namespaced:  true,
		ShortNames:  []string{"deploy"},
		Categories:  []string{"all"},
		StoragePath: "deployments",
		New:         resources.Make[appsv1.Deployment],
		Strategy:    deploymentStrategy().Strategy(),
		Subresources: []resources.Subresource{resources.Scale(),
			resources.Status(deploymentStatusStrategy().Strategy())},
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.Column("Ready", "Number of the pod with ready state"),
			resources.Column("Up-to-date", status["updatedReplicas"]),
			resources.Column("Available", status["availableReplicas"]),
			resources.AgeColumn(),
			containersColumn(),
			imagesColumn(),
			resources.Wide(resources.Column("Selector", appsv1.DeploymentSpec{}.SwaggerDoc()["selector"])),
		},
		Cells: resources.Cells(func(d *appsv1.Deployment, now time.Time) []any {
			names, images := podspec.ContainerTexts(d.Spec.Template.Spec.Containers)
			return []any{d.Name, fmt.Sprintf("%d/%d", d.Status.ReadyReplicas, deref(d.Spec.Replicas)),
				int64(d.Status.UpdatedReplicas),
				int64(d.Status.AvailableReplicas), resources.Age(d.CreationTimestamp, now), names, images,
				selectorText(d.Spec.Selector)}
		}),
	}
}

func deploymentStrategy() resources.Typed[*appsv1.Deployment] {
	return resources.Typed[*appsv1.Deployment]{
		Default:       defaultDeployment,
		PrepareCreate: func(d *appsv1.Deployment) { d.Status = appsv1.DeploymentStatus{} },
		PrepareUpdate: func(obj, old *appsv1.Deployment) { obj.Status = *old.Status.DeepCopy() },
		Validate:      validateDeployment,
		ValidateUpdate: func(obj, old *appsv1.Deployment) fieldErrors {
			return append(validateDeployment(obj),
				apivalidation.ValidateImmutableField(obj.Spec.Selector, old.Spec.Selector, specPath("selector"))...)
		},
		Warnings: func(obj, old *appsv1.Deployment) []string {
			if old == nil {
				return append(podspec.NameWarnings(obj.Name, "Pod names and hostnames"),
					templateWarnings(&obj.Spec.Template)...)
			}
			if obj.Generation == old.Generation {
				return nil
			}
			return templateWarnings(&obj.Spec.Template)
		},
		SpecChanged: func(obj, old *appsv1.Deployment) bool {
			return !equal.Semantic(&obj.Spec, &old.Spec) ||
				!apiequality.Semantic.DeepEqual(obj.Annotations, old.Annotations)
		},
	}
}

func deploymentStatusStrategy() resources.Typed[*appsv1.Deployment] {
	s := deploymentStrategy()
	s.PrepareUpdate = func(obj, old *appsv1.Deployment) {
		obj.Spec = *old.Spec.DeepCopy()
		obj.Labels = old.Labels
	}
	s.ValidateUpdate = validateDeploymentStatus
	s.SpecChanged, s.Warnings = nil, nil
	s.Resets = []string{"spec", "metadata.labels"}
	return s
}

func defaultDeployment(d *appsv1.Deployment) {
	s := &d.Spec
	podspec.DefaultTemplate(&s.Template)
	defaults.SetPtr(&s.Replicas, 1)
	defaults.Set(&s.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if s.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		defaults.SetPtr(&s.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		defaults.SetPtr(&s.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		defaults.SetPtr(&s.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
	defaults.SetPtr(&s.RevisionHistoryLimit, 10)
	defaults.SetPtr(&s.ProgressDeadlineSeconds, 600)
}
