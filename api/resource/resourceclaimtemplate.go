package resource

import (
	resourcev1 "k8s.io/api/resource/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
)

func resourceClaimTemplateRow() resources.Row {
	return resources.Row{
		GVK: resourcev1.SchemeGroupVersion.WithKind("ResourceClaimTemplate"), Resource: "resourceclaimtemplates",
		Singular:    "resourceclaimtemplate",
		Namespaced:  true,
		StoragePath: "resourceclaimtemplates",
		New:         resources.Make[resourcev1.ResourceClaimTemplate],
		Strategy: resources.Typed[*resourcev1.ResourceClaimTemplate]{
			ReturnDeleted: true,
			Default:       func(t *resourcev1.ResourceClaimTemplate) { defaultClaimSpec(&t.Spec.Spec) },
			PrepareCreate: func(t *resourcev1.ResourceClaimTemplate) { dropDerived(&t.Spec.Spec) },
			PrepareUpdate: func(obj, old *resourcev1.ResourceClaimTemplate) {
				if !derives(&old.Spec.Spec) {
					dropDerived(&obj.Spec.Spec)
				}
			},
			Validate: validateTemplate,
			ValidateUpdate: func(obj, old *resourcev1.ResourceClaimTemplate) field.ErrorList {
				errs := apivalidation.ValidateImmutableField(obj.Spec, old.Spec, field.NewPath("spec"))
				return append(errs, validateTemplate(obj)...)
			},
		}.Strategy(),
		Columns: resources.NameAndAge(),
		Cells:   resources.Cells(resources.NameAndAgeCells[*resourcev1.ResourceClaimTemplate]),
	}
}

func validateTemplate(t *resourcev1.ResourceClaimTemplate) field.ErrorList {
	path := field.NewPath("spec")
	errs := validateTemplateMeta(&t.Spec.ObjectMeta, path.Child("metadata"))
	return append(errs, validateClaimSpec(&t.Spec.Spec, nil, path.Child("spec"))...)
}

// validateTemplateMeta: a template gives its claims labels and annotations, and nothing else.
func validateTemplateMeta(m *metav1.ObjectMeta, path *field.Path) field.ErrorList {
	errs := apivalidation.ValidateAnnotations(m.Annotations, path.Child("annotations"))
	errs = append(errs, metavalidation.ValidateLabels(m.Labels, path.Child("labels"))...)
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"name", m.Name != ""}, {"generateName", m.GenerateName != ""}, {"namespace", m.Namespace != ""},
		{"selfLink", m.SelfLink != ""}, {"uid", m.UID != ""},
		{"resourceVersion", m.ResourceVersion != ""}, {"generation", m.Generation != 0},
		{"creationTimestamp", !m.CreationTimestamp.IsZero()},
		{"deletionTimestamp", m.DeletionTimestamp != nil},
		{"deletionGracePeriodSeconds", m.DeletionGracePeriodSeconds != nil},
		{"ownerReferences", len(m.OwnerReferences) > 0}, {"finalizers", len(m.Finalizers) > 0},
		{"managedFields", len(m.ManagedFields) > 0},
	} {
		if f.set {
			errs = append(errs, field.Forbidden(path.Child(f.name), "cannot be set"))
		}
	}
	return errs
}
