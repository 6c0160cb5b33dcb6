package owned

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/controller"
)

// Revisions wakes the owner of a ControllerRevision that is changed or gone.
//
// A new revision wakes no owner. The owner knows those that it made itself. A revision that another writer makes in the
// owner's name stays until the owner has another reason to look: if the owner looked at once, it would take a revision
// with the content of the current one for a duplicate, and delete one of the two while its writer still works with it.
type Revisions struct {
	// Kind is the owner's.
	Kind schema.GroupVersionKind
	Wake func(controller.Key)
}

// Handlers are what watches the revisions.
func (r Revisions) Handlers() controller.Handlers[*appsv1.ControllerRevision] {
	wake := func(rev *appsv1.ControllerRevision) {
		if key, _, ok := ControllerKey(rev, r.Kind); ok {
			r.Wake(key)
		}
	}
	return controller.Handlers[*appsv1.ControllerRevision]{Update: func(_, rev *appsv1.ControllerRevision) {
		wake(rev)
	}, Delete: wake}
}
