package apply

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

// annotationManager has the annotation of client-side apply once the object is applied by the server.
const annotationManager = "kubectl-last-applied"

// applyServerSide has the server merge one object.
//
// What client-side apply has set before would stay with its manager, and never go when the file drops it. So its fields
// become ours, and then the file is applied again. The annotation gets a manager of its own: client-side apply needs it
// if the user returns to that. This comes after the apply, not before: the answer shows whether it is needed, which it
// is once in an object's life. If it fails, the object is applied nevertheless, and the next apply tries again.
func (o *Options) applyServerSide(ctx context.Context, i *resource.Info) (string, error) {
	if i.Name == "" && i.Object.GetGenerateName() != "" {
		return "", fmt.Errorf("from %s: cannot use generate name with apply", i.Object.GetGenerateName())
	}
	if i.Name == "" {
		return "", errors.New("resource name may not be empty")
	}
	config, err := resource.Encode(i.Object)
	if err != nil {
		return "", write.WithSource("serverside-applying", i.Source, err)
	}
	if err := o.serverSide.Apply(ctx, i, config, o.PatchOptions(), o.subresource); apierrors.IsConflict(err) {
		return "", fmt.Errorf("%v\n%s", err, onConflict)
	} else if err != nil {
		return "", err
	}
	o.warnIfDeleting(i)
	const operation = "serverside-applied"
	if o.subresource != "" {
		return operation, nil // client-side apply has none
	}
	if err := o.keepAnnotation(ctx, i); err != nil {
		fmt.Fprintf(o.ErrOut, "Warning: failed to migrate %s for Server-Side Apply. This is non-fatal and will be retried next time you apply. Error: %v\n", write.LastAppliedAnnotation, err)
		return operation, nil
	}
	moved, err := o.takeFields(ctx, i)
	if err != nil {
		fmt.Fprintf(o.ErrOut, "Warning: server rejected managed fields migration to Server-Side Apply. This is non-fatal and will be retried next time you apply. Error: %v\n", err)
		return operation, nil
	}
	if moved {
		if err := o.serverSide.Apply(ctx, i, config, o.PatchOptions()); err != nil {
			fmt.Fprintf(o.ErrOut, "Warning: failed to re-apply configuration after performing Server-Side Apply migration. This is non-fatal and will be retried next time you apply. Error: %v\n", err)
		}
	}
	return operation, nil
}

// clients are the managers that have written the annotation of client-side apply.
func clients(u *unstructured.Unstructured) sets.Set[string] {
	annotation := fieldpath.NewSet(
		fieldpath.MakePathOrDie("metadata", "annotations", corev1.LastAppliedConfigAnnotation))
	out := sets.New[string]()
	for _, e := range csaupgrade.FindFieldsOwners(u.GetManagedFields(), metav1.ManagedFieldsOperationUpdate,
		annotation) {
		out.Insert(e.Manager)
	}
	return out
}

// keepAnnotation applies the annotation of client-side apply, if there is one that an update has written, in its
// manager's name. Only the default manager does: the annotation is what the server keeps up to date for it.
func (o *Options) keepAnnotation(ctx context.Context, i *resource.Info) error {
	kept, ok := i.Object.GetAnnotations()[write.LastAppliedAnnotation]
	if !ok || o.Manager != write.ServerManager || clients(i.Object).Len() == 0 {
		return nil
	}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(i.Object.GroupVersionKind())
	u.SetName(i.Object.GetName())
	u.SetNamespace(i.Object.GetNamespace())
	u.SetAnnotations(map[string]string{write.LastAppliedAnnotation: kept})
	config, err := resource.Encode(u)
	if err != nil {
		return err
	}
	opts := o.PatchOptions()
	opts.FieldManager = annotationManager
	return i.Patch(ctx, types.ApplyPatchType, config, opts)
}

// takeFields makes the fields ours that client-side apply has set, and reports whether there were any.
func (o *Options) takeFields(ctx context.Context, i *resource.Info) (bool, error) {
	for try := 0; ; try++ {
		from := clients(i.Object).Insert(manager)
		patch, err := csaupgrade.UpgradeManagedFieldsPatch(i.Object, from, o.Manager)
		if err != nil || patch == nil {
			return false, err
		}
		err = i.Patch(ctx, types.JSONPatchType, patch, o.PatchOptions())
		if !apierrors.IsConflict(err) || try == conflicts {
			return err == nil, err
		}
		if err := i.Get(ctx); err != nil {
			return false, err
		}
	}
}

// onConflict follows the conflicts in the error.
const onConflict = "Please review the fields above--they currently have other managers. Here\n" +
	"are the ways you can resolve this warning:\n" +
	"* If you intend to manage all of these fields, please re-run the apply\n" +
	"  command with the `--force-conflicts` flag.\n" +
	"* If you do not intend to manage all of the fields, please edit your\n" +
	"  manifest to remove references to the fields that should keep their\n" +
	"  current managers.\n" +
	"* You may co-own fields by updating your manifest to match the existing\n" +
	"  value; in this case, you'll become the manager if the other manager(s)\n" +
	"  stop managing the field (remove it from their configuration).\n" +
	"See https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts"
