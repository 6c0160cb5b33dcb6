package apiextensions

import (
	"slices"
	"strings"
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/resources"
)

// Rows returns the resources of the group apiextensions.k8s.io.
func Rows() []resources.Row {
	return []resources.Row{definitionRow()}
}

func definitionRow() resources.Row {
	return resources.Row{
		GVK: v1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), Resource: "customresourcedefinitions",
		Singular:        "customresourcedefinition",
		ShortNames:      []string{"crd", "crds"},
		Categories:      []string{"api-extensions"},
		PlainFinalizers: true,
		KeepsEmpty:      true,
		StoragePath:     "apiextensions.k8s.io/customresourcedefinitions",
		New:             resources.Make[v1.CustomResourceDefinition],
		Strategy: resources.Typed[*v1.CustomResourceDefinition]{
			NeedsVersion: true, NoPropagation: true,
			Default: Default, PrepareCreate: prepareCreate, PrepareUpdate: prepareUpdate, PrepareDelete: prepareDelete,
			Held:     held,
			Validate: Validate, ValidateUpdate: validateUpdate, SpecChanged: specChanged, Warnings: warnings,
		}.Strategy(),
		Subresources: []resources.Subresource{resources.Status(resources.Typed[*v1.CustomResourceDefinition]{
			Default: Default, PrepareUpdate: prepareStatusUpdate, ValidateUpdate: validateStatusUpdate,
		}.Strategy())},
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			{Name: "Scope", Type: "string", Description: "Cluster/Namespaced"},
			{Name: "Versions", Type: "string", Description: "Served versions"},
			{Name: "Created At", Type: "date", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]},
			{Name: "Group", Type: "string", Description: "API group", Priority: 1},
			{Name: "Kind", Type: "string", Description: "CustomResource kind", Priority: 1},
			{Name: "ShortNames", Type: "string", Description: "Short names", Priority: 1},
			{Name: "Established", Type: "boolean", Description: "Established status", Priority: 1},
		},
		Cells: resources.Cells(func(crd *v1.CustomResourceDefinition, _ time.Time) []any {
			return []any{crd.Name, string(crd.Spec.Scope), servedVersions(crd),
				crd.CreationTimestamp.UTC().Format(time.RFC3339), crd.Spec.Group, crd.Spec.Names.Kind,
				strings.Join(crd.Spec.Names.ShortNames, ","), IsTrue(crd, v1.Established)}
		}),
	}
}

// servedVersions lists the versions that are served, and says which of them is stored: "v1(storage),v1beta1".
func servedVersions(crd *v1.CustomResourceDefinition) string {
	var out []string
	for _, v := range crd.Spec.Versions {
		switch {
		case v.Served && v.Storage:
			out = append(out, v.Name+"(storage)")
		case v.Served:
			out = append(out, v.Name)
		}
	}
	return strings.Join(out, ",")
}

// prepareDelete adds the cleanup finalizer, which keeps a deleted definition until its objects are gone. The server
// removes the finalizer then. Without it the objects would stay in storage, and come back with the next definition of
// that name.
func prepareDelete(crd *v1.CustomResourceDefinition) {
	if !slices.Contains(crd.Finalizers, v1.CustomResourceCleanupFinalizer) {
		crd.Finalizers = append(crd.Finalizers, v1.CustomResourceCleanupFinalizer)
	}
	var since metav1.Time
	if crd.DeletionTimestamp != nil {
		since = *crd.DeletionTimestamp
	}
	SetCondition(crd, v1.CustomResourceDefinitionCondition{
		Type: v1.Terminating, Status: v1.ConditionTrue, Reason: "InstanceDeletionPending",
		Message:            "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
		LastTransitionTime: since,
	})
}

// held reports whether the cleanup is still to be done.
func held(crd *v1.CustomResourceDefinition) bool {
	return slices.Contains(crd.Finalizers, v1.CustomResourceCleanupFinalizer)
}
