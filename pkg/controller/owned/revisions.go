package owned

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/controller"
)

// Revisions wakes the owner of a ControllerRevision that is changed or gone.
//
// A new one wakes nobody. The owner knows those it made itself, and one that somebody else makes in its name stays
// until the owner has another reason to look: looked at earlier, one with the content of the current revision would at
// once be taken for a duplicate, and one of the two be deleted under the hands of who made it.
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
