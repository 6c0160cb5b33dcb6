package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sync/errgroup"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"bonsai/api/flowcontrol"
)

// reconciler keeps the objects of one kind of flowcontrol.apiserver.k8s.io. What it does is what the comment of the
// API's AutoUpdateAnnotationKey says: a mandatory object is as it is here, a suggested one as long as its annotation
// says so or, where that says nothing, nobody has changed it. What says that it is one of ours and is not is deleted.
// Several servers do the same, each on what it finds, so it does not matter which comes first.
type reconciler[T any] struct {
	resource  string
	mandatory []T
	suggested []T
	// object is a T as an object, meta its metadata.
	object func(*T) runtime.Object
	meta   func(*T) *metav1.ObjectMeta
	// same reports whether the specs are, copy makes that of have so.
	same func(have, want *T) bool
	copy func(have, want *T)
}

// fairness keeps the mandatory and suggested priority levels and flow schemas. The levels come first: a schema without
// its level is of no use.
func (b *Bootstrap) fairness(ctx context.Context) error {
	levels := reconciler[flowcontrolv1.PriorityLevelConfiguration]{
		resource: "prioritylevelconfigurations", mandatory: flowcontrol.MandatoryLevels(),
		suggested: flowcontrol.SuggestedLevels(),
		object:    func(l *flowcontrolv1.PriorityLevelConfiguration) runtime.Object { return l },
		meta:      func(l *flowcontrolv1.PriorityLevelConfiguration) *metav1.ObjectMeta { return &l.ObjectMeta },
		same:      sameLevel,
		copy:      func(have, want *flowcontrolv1.PriorityLevelConfiguration) { have.Spec = *want.Spec.DeepCopy() },
	}
	schemas := reconciler[flowcontrolv1.FlowSchema]{
		resource: "flowschemas", mandatory: flowcontrol.MandatorySchemas(), suggested: flowcontrol.SuggestedSchemas(),
		object: func(f *flowcontrolv1.FlowSchema) runtime.Object { return f },
		meta:   func(f *flowcontrolv1.FlowSchema) *metav1.ObjectMeta { return &f.ObjectMeta },
		same: func(have, want *flowcontrolv1.FlowSchema) bool {
			return apiequality.Semantic.DeepEqual(have.Spec, want.Spec)
		},
		copy: func(have, want *flowcontrolv1.FlowSchema) { have.Spec = *want.Spec.DeepCopy() },
	}
	return errors.Join(levels.reconcile(ctx, b), schemas.reconcile(ctx, b))
}

// sameLevel: what the level "exempt" says of its shares belongs to the administrator.
func sameLevel(have, want *flowcontrolv1.PriorityLevelConfiguration) bool {
	a, b := have.Spec, want.Spec
	if want.Name == flowcontrolv1.PriorityLevelConfigurationNameExempt {
		a.Exempt, b.Exempt = nil, nil
	}
	return apiequality.Semantic.DeepEqual(a, b)
}

func (k *reconciler[T]) reconcile(ctx context.Context, b *Bootstrap) error {
	gr := schema.GroupResource{Group: flowcontrolv1.GroupName, Resource: k.resource}
	ours := map[string]bool{}
	g, group := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	one := func(want *T, mandatory bool) {
		ours[k.meta(want).Name] = true
		g.Go(func() error { return b.ensure(group, gr, k.object(want), k.fix(want, mandatory)) })
	}
	for i := range k.mandatory {
		one(&k.mandatory[i], true)
	}
	for i := range k.suggested {
		one(&k.suggested[i], false)
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return b.deleteStrays(ctx, gr, ours)
}

func (k *reconciler[T]) fix(want *T, mandatory bool) func(runtime.Object) (bool, error) {
	return func(obj runtime.Object) (bool, error) {
		have, ok := any(obj).(*T)
		if !ok {
			return false, fmt.Errorf("%T is not one of %s", obj, k.resource)
		}
		m := k.meta(have)
		auto, said := autoUpdates(m)
		switch {
		case mandatory:
			said, auto = said && auto, true
		case !said:
			auto = m.Generation == 1
		}
		if !said {
			metav1.SetMetaDataAnnotation(m, flowcontrolv1.AutoUpdateAnnotationKey, strconv.FormatBool(auto))
		}
		if !auto || k.same(have, want) {
			return !said, nil
		}
		k.copy(have, want)
		return true, nil
	}
}

// autoUpdates tells what an object says of whether servers may change it, and whether it says anything that can be
// read.
func autoUpdates(m metav1.Object) (auto, said bool) {
	auto, err := strconv.ParseBool(m.GetAnnotations()[flowcontrolv1.AutoUpdateAnnotationKey])
	return auto, err == nil
}

// deleteStrays deletes the objects that say that servers may change them but that this server does not know: those of
// earlier versions.
func (b *Bootstrap) deleteStrays(ctx context.Context, gr schema.GroupResource, ours map[string]bool) error {
	store := b.cfg.Stores.Store(gr)
	all, err := store.List(ctx, "", "")
	if err != nil {
		return fmt.Errorf("listing %s: %w", gr, err)
	}
	for _, obj := range all {
		m, err := meta.Accessor(obj)
		if err != nil {
			return err
		}
		if auto, _ := autoUpdates(m); !auto || ours[m.GetName()] {
			continue
		}
		_, _, err = store.Delete(ctx, "", m.GetName(), &metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: ptr.To(m.GetUID()),
				ResourceVersion: ptr.To(m.GetResourceVersion())},
		})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return wrap(err, "deleting", gr, m)
		}
	}
	return nil
}
