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

// Application is one server-side apply: a configuration that becomes what Options.FieldManager has applied of an
// object.
type Application struct {
	Config  *unstructured.Unstructured
	Options *metav1.PatchOptions
	// MayCreate is asked before the object is made. An error ends the apply.
	MayCreate func() error
	// Merged is called with what the configuration has been merged into, maybe for several attempts, before anything
	// else looks at the object, which it may put right. An error ends the apply.
	Merged func(obj runtime.Object) error
}

// ApplyItem applies (server-side apply) to an object. Without a subresource it creates the object if there is none, and
// reports whether it did.
//
// An apply does not know whether the object exists. It tries an update, and creates if there is nothing to update. If
// another client creates the object in between, it tries the update again, applyAttempts times at most: two clients
// that create and delete in turn could keep it busy otherwise. MayCreate and Merged run in each attempt.
func (g *Generic) ApplyItem(ctx context.Context, ns, name, subresource string, a *Application) (item *storage.Item,
	obj runtime.Object, created bool, err error) {
	opts := a.Options
	by := g.writer(ctx, opts.FieldManager, subresource)
	force := opts.Force != nil && *opts.Force
	u := &update{Generic: g, ns: ns, name: name, subresource: subresource, strategy: strategyOf(g.Row, subresource),
		opts: PatchToUpdate(opts), dryRun: isDryRun(opts.DryRun), noted: true}
	merge := func(current runtime.Object, config *unstructured.Unstructured) (runtime.Object, error) {
		obj, err := g.Fields.Apply(ctx, g.Row, by, current, config, force)
		if err != nil {
			return nil, Plain(err)
		}
		if readable := g.Row.Readable; readable != nil {
			if err := readable(obj); err != nil {
				return nil, Plain(fmt.Errorf("failed to convert to unversioned (%s/%s; %s): %w", config.GetNamespace(),
					name, config.GroupVersionKind(), err))
			}
		}
		return obj, a.Merged(obj)
	}
	// Each attempt merges a copy: Fields.Apply may change the configuration.
	u.change = func(current runtime.Object, _ *storage.Item) (runtime.Object, error) {
		return merge(current, a.Config.DeepCopy())
	}
	for attempt := 1; ; attempt++ {
		item, obj, err = g.update(ctx, u)
		if subresource != "" || !apierrors.IsNotFound(err) {
			return item, obj, false, err
		}
		if err := a.MayCreate(); err != nil {
			return nil, nil, false, err
		}
		// A create with a resourceVersion is refused (insert); in an apply it only guards the update.
		anew := a.Config.DeepCopy()
		anew.SetResourceVersion("")
		if obj, err = merge(nil, anew); err != nil {
			return nil, nil, false, err
		}
		// After the merge, whose errors come first.
		if uid := a.Config.GetUID(); uid != "" {
			return nil, nil, false, apierrors.NewConflict(g.gr, name,
				fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
		}
		item, obj, err = g.createNoted(ctx, ns, name, obj, patchToCreate(opts), true)
		if !apierrors.IsAlreadyExists(err) || attempt == applyAttempts {
			return item, obj, err == nil, err
		}
	}
}

// Plain is the 500 with nothing but the words of err, as Kubernetes answers what does not fit an object: an apply of
// unknown fields, a resourceVersion that is no number. A Status error stays what it is.
func Plain(err error) error {
	var status apierrors.APIStatus
	if err == nil || errors.As(err, &status) {
		return err
	}
	return &apierrors.StatusError{
		ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
			Message: err.Error()}}
}

// PatchToUpdate are the options of a patch as those of the update that it is.
func PatchToUpdate(opts *metav1.PatchOptions) *metav1.UpdateOptions {
	out := &metav1.UpdateOptions{DryRun: opts.DryRun, FieldManager: opts.FieldManager,
		FieldValidation: opts.FieldValidation}
	out.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("UpdateOptions"))
	return out
}

func patchToCreate(opts *metav1.PatchOptions) *metav1.CreateOptions {
	out := &metav1.CreateOptions{DryRun: opts.DryRun, FieldManager: opts.FieldManager,
		FieldValidation: opts.FieldValidation}
	out.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("CreateOptions"))
	return out
}
