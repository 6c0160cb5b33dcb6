package owned

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/controller"
)

// ControllerKey names the controller of obj if it is of the given kind.
func ControllerKey(obj metav1.Object, kind schema.GroupVersionKind) (key controller.Key, uid types.UID, ok bool) {
	ref := metav1.GetControllerOfNoCopy(obj)
	if ref == nil || ref.Kind != kind.Kind {
		return controller.Key{}, "", false
	}
	if gv, err := schema.ParseGroupVersion(ref.APIVersion); err != nil || gv.Group != kind.Group {
		return controller.Key{}, "", false
	}
	return controller.Key{Namespace: obj.GetNamespace(), Name: ref.Name}, ref.UID, true
}

// WatchOwners is controller.WatchKeys for owners whose children e expects.
func WatchOwners[T apiclient.Object](l *controller.Loop[controller.Key], i *controller.Informer[T],
	e *Expectations) error {
	wake := func(o T) { l.Add(controller.KeyOf(o)) }
	return controller.Watch(l, i, controller.Handlers[T]{Add: wake, Update: func(_, o T) {
		wake(o)
	}, Delete: func(o T) {
		e.Forget(o.GetUID())
		wake(o)
	}})
}
