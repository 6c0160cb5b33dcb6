package apply

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

// applied holds the UIDs of the objects that one run applied, which are not pruned, and the namespaces that it applied
// to, which are searched. UIDs and not names: an object that was deleted and created again in between is another one.
type applied struct {
	namespaces sets.Set[string]
	uids       sets.Set[types.UID]
}

func (a *applied) add(i *resource.Info) {
	if i.Namespaced() {
		a.namespaces.Insert(i.Namespace)
	}
	a.uids.Insert(i.Object.GetUID())
}

// validatePrune refuses what does not go with --prune and --applyset.
func (o *Options) validatePrune() error {
	switch {
	case o.setName != "" && !o.prune.On:
		return errors.New("--applyset requires --prune")
	case !o.prune.On:
		return nil
	case o.deletion.Force:
		return errors.New("--force cannot be used with --prune")
	case o.set != nil && o.selector != "":
		return errors.New("--selector is incompatible with --applyset")
	case o.set != nil && o.all:
		return errors.New("--all is incompatible with --applyset")
	case o.set != nil && len(o.prune.Allowed) > 0:
		return errors.New("--prune-allowlist is incompatible with --applyset")
	case o.set != nil:
		return nil
	case o.serverSide.On:
		return errors.New("--prune is in alpha and doesn't currently work on objects created by server-side apply")
	case !o.all && o.selector == "":
		return errors.New("all resources selected for prune without explicitly passing --all. To prune all resources, pass the --all flag. If you did not mean to prune all resources, specify a label selector")
	}
	return nil
}

// pruneAll deletes the objects that an earlier run applied and this one did not: the members of the apply set, or,
// without one, the objects of the allowed kinds that match the selector and have the annotation of an apply.
func (o *Options) pruneAll(ctx context.Context, done *applied) error {
	if o.set != nil {
		gone, err := o.set.members(ctx, done.uids)
		if err == nil {
			err = resource.Each(gone, nil, func(i *resource.Info) error { return o.pruneOne(ctx, i) })
		}
		if err != nil {
			return err // the parent still names all kinds and namespaces, so the next run can finish
		}
		return o.set.end(ctx)
	}
	gone, err := o.prune.Find(ctx, o.Client, done.namespaces, o.selector, done.uids)
	if err != nil {
		return err
	}
	return resource.Each(gone, nil, func(i *resource.Info) error { return o.pruneOne(ctx, i) })
}

func (o *Options) pruneOne(ctx context.Context, i *resource.Info) error {
	if o.DryRun != write.DryRunClient {
		opts := o.deletion.Options()
		opts.DryRun = resource.DryRun(o.DryRun == write.DryRunServer)
		if _, err := i.Delete(ctx, opts); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return o.Show("pruned", i.Object)
}
