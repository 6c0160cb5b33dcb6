package core

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/defaults"
	"bonsai/api/resources"
	"bonsai/api/validate"
)

func namespaceRow() resources.Row {
	finalize := namespaceFinalizeStrategy().Strategy()
	return resources.Row{
		GVK: corev1.SchemeGroupVersion.WithKind("Namespace"), Resource: "namespaces", Singular: "namespace",
		ShortNames:         []string{"ns"},
		StoragePath:        "namespaces",
		New:                resources.Make[corev1.Namespace],
		NoDeleteCollection: true,
		Strategy:           namespaceStrategy().Strategy(),
		Subresources: []resources.Subresource{
			{Name: "finalize", Verbs: []string{"update"}, Strategy: &finalize},
			resources.Status(namespaceStatusStrategy().Strategy()),
		},
		FieldNames: []string{"status.phase"},
		Fields: resources.Fields(func(n *corev1.Namespace) fields.Set {
			return fields.Set{"status.phase": string(n.Status.Phase)}
		}),
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.Column("Status", "The status of the namespace"),
			resources.AgeColumn(),
		},
		Cells: resources.Cells(func(n *corev1.Namespace, now time.Time) []any {
			return []any{n.Name, string(n.Status.Phase), resources.Age(n.CreationTimestamp, now)}
		}),
	}
}

// namespaceStrategy: a namespace starts Active and holds the finalizer "kubernetes" in its spec, which the namespace
// controller takes away (through finalize) when all content is gone.
func namespaceStrategy() resources.Typed[*corev1.Namespace] {
	return resources.Typed[*corev1.Namespace]{
		Default: defaultNamespace,
		PrepareCreate: func(n *corev1.Namespace) {
			n.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
			if !slices.Contains(n.Spec.Finalizers, corev1.FinalizerKubernetes) {
				n.Spec.Finalizers = append(n.Spec.Finalizers, corev1.FinalizerKubernetes)
			}
		},
		PrepareUpdate: func(obj, old *corev1.Namespace) {
			obj.Spec.Finalizers = slices.Clone(old.Spec.Finalizers)
			obj.Status = *old.Status.DeepCopy()
		},
		Validate: validateNamespace,
		ValidateUpdate: func(obj, _ *corev1.Namespace) field.ErrorList {
			return validateNamespace(obj)
		},
		ValidateName:  apivalidation.ValidateNamespaceName,
		PrepareDelete: func(n *corev1.Namespace) { n.Status.Phase = corev1.NamespaceTerminating },
		Held:          func(n *corev1.Namespace) bool { return len(n.Spec.Finalizers) > 0 },
	}
}

// defaultNamespace labels a namespace with its name, so that selectors can name it.
func defaultNamespace(n *corev1.Namespace) {
	defaults.Set(&n.Status.Phase, corev1.NamespaceActive)
	if n.Name == "" || n.Labels[corev1.LabelMetadataName] == n.Name {
		return
	}
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	n.Labels[corev1.LabelMetadataName] = n.Name
}

func namespaceStatusStrategy() resources.Typed[*corev1.Namespace] {
	s := namespaceStrategy()
	s.PrepareUpdate = func(obj, old *corev1.Namespace) { obj.Spec = *old.Spec.DeepCopy() }
	s.ValidateUpdate = func(obj, _ *corev1.Namespace) field.ErrorList {
		path := field.NewPath("status", "Phase")
		switch {
		case obj.DeletionTimestamp.IsZero() && obj.Status.Phase != corev1.NamespaceActive:
			return field.ErrorList{field.Invalid(path, obj.Status.Phase,
				"may only be 'Active' if `deletionTimestamp` is empty")}
		case !obj.DeletionTimestamp.IsZero() && obj.Status.Phase != corev1.NamespaceTerminating:
			return field.ErrorList{field.Invalid(path, obj.Status.Phase,
				"may only be 'Terminating' if `deletionTimestamp` is not empty")}
		}
		return nil
	}
	return s
}

func namespaceFinalizeStrategy() resources.Typed[*corev1.Namespace] {
	s := namespaceStrategy()
	s.PrepareUpdate = func(obj, old *corev1.Namespace) { obj.Status = *old.Status.DeepCopy() }
	s.ValidateUpdate = func(obj, _ *corev1.Namespace) field.ErrorList {
		return validateNamespaceFinalizers(obj, func(i int) *field.Path {
			return field.NewPath("spec", "finalizers").Index(i)
		})
	}
	s.Resets = []string{"status"}
	return s
}

func validateNamespace(n *corev1.Namespace) field.ErrorList {
	return validateNamespaceFinalizers(n, func(int) *field.Path { return field.NewPath("spec", "finalizers") })
}

// validateNamespaceFinalizers checks each finalizer; at is its path.
func validateNamespaceFinalizers(n *corev1.Namespace, at func(int) *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, f := range n.Spec.Finalizers {
		path := at(i)
		msgs := validation.IsQualifiedName(string(f))
		errs = append(errs, validate.Invalid(path, string(f), msgs)...)
		if !strings.Contains(string(f), "/") && f != corev1.FinalizerKubernetes {
			errs = append(errs, field.Invalid(path, string(f),
				"name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
}
