package core

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/podspec"
	"bonsai/api/resources"
)

func podTemplateRow() resources.Row {
	path := field.NewPath("template")
	return resources.Row{
		GVK: corev1.SchemeGroupVersion.WithKind("PodTemplate"), Resource: "podtemplates", Singular: "podtemplate",
		Namespaced:  true,
		StoragePath: "podtemplates",
		New:         resources.Make[corev1.PodTemplate],
		Strategy: resources.Typed[*corev1.PodTemplate]{
			ReturnDeleted: true,
			Default:       func(t *corev1.PodTemplate) { podspec.DefaultTemplate(&t.Template) },
			Validate: func(t *corev1.PodTemplate) field.ErrorList {
				return podspec.ValidateTemplate(&t.Template, path)
			},
			ValidateUpdate: func(t, _ *corev1.PodTemplate) field.ErrorList {
				return podspec.ValidateTemplate(&t.Template, path)
			},
			Warnings: func(t, old *corev1.PodTemplate) []string {
				if old != nil && apiequality.Semantic.DeepEqual(t.Template, old.Template) {
					return nil
				}
				return podspec.Warnings(&t.Template.Spec, t.Template.Annotations, path)
			},
			SpecChanged: func(obj, old *corev1.PodTemplate) bool {
				return !apiequality.Semantic.DeepEqual(obj.Template, old.Template)
			},
		}.Strategy(),
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.Column("Containers", "Names of each container in the template."),
			resources.Column("Images", "Images referenced by each container in the template."),
			resources.Column("Pod Labels", "The labels for the pod template."),
		},
		Cells: resources.Cells(func(t *corev1.PodTemplate, _ time.Time) []any {
			names, images := podspec.ContainerTexts(t.Template.Spec.Containers)
			return []any{t.Name, names, images, SelectorText(t.Template.Labels)}
		}),
	}
}
