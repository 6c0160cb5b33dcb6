package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/storage"
)

// applyAttempts is how often an object is applied again that others create and delete at the same time.
const applyAttempts = 5

// ApplyItem makes config the fields that opts.FieldManager has applied of an object (server-side apply). Without a subresource it
// creates the object if there is none; mayCreate is asked before. It tells whether it did.
func (g *Generic) ApplyItem(ctx context.Context, ns, name, subresource string, config *unstructured.Unstructured, opts *metav1.PatchOptions, mayCreate func() error) (item *storage.Item, obj runtime.Object, created bool, err error) {
	by := g.writer(ctx, opts.FieldManager, subresource)
	force := opts.Force != nil && *opts.Force
	u := &update{Generic: g, ns: ns, name: name, subresource: subresource, strategy: g.strategyOf(subresource), opts: PatchToUpdate(opts), dryRun: isDryRun(opts.DryRun), noted: true}
	u.change = func(current runtime.Object, _ *storage.Item) (runtime.Object, error) {
		obj, err := g.Fields.Apply(ctx, g.Row, by, current, config.DeepCopy(), force)
		return obj, Plain(err)
	}
	for attempt := 1; ; attempt++ {
		item, obj, err = g.update(ctx, u)
		if subresource != "" || !apierrors.IsNotFound(err) {
			return item, obj, false, err
		}
		if err := mayCreate(); err != nil {
			return nil, nil, false, err
		}
		anew := config.DeepCopy()
		anew.SetResourceVersion("")
		if obj, err = g.Fields.Apply(ctx, g.Row, by, nil, anew, force); err != nil {
			return nil, nil, false, err
		}
		if uid := config.GetUID(); uid != "" {
			return nil, nil, false, apierrors.NewConflict(g.gr, name, fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
		}
		item, obj, err = g.createNoted(ctx, ns, name, obj, patchToCreate(opts), true)
		if !apierrors.IsAlreadyExists(err) || attempt == applyAttempts {
			return item, obj, err == nil, err
		}
	}
}

// Plain is the 500 with nothing but the words of err, as Kubernetes answers what does not fit an object: an apply of unknown fields,
// a resourceVersion that is no number. A Status error stays what it is.
func Plain(err error) error {
	var status apierrors.APIStatus
	if err == nil || errors.As(err, &status) {
		return err
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}}
}

// PatchToUpdate are the options of a patch as those of the update that it is.
func PatchToUpdate(opts *metav1.PatchOptions) *metav1.UpdateOptions {
	out := &metav1.UpdateOptions{DryRun: opts.DryRun, FieldManager: opts.FieldManager, FieldValidation: opts.FieldValidation}
	out.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("UpdateOptions"))
	return out
}

func patchToCreate(opts *metav1.PatchOptions) *metav1.CreateOptions {
	out := &metav1.CreateOptions{DryRun: opts.DryRun, FieldManager: opts.FieldManager, FieldValidation: opts.FieldValidation}
	out.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("CreateOptions"))
	return out
}
