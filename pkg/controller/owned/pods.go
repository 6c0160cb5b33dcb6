package owned

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/controller"
)

// Pods wakes the owners of pods when these change, and tells Expect what has been seen.
type Pods struct {
	// Kind is the owners' kind.
	Kind   schema.GroupVersionKind
	Expect *Expectations
	Wake   func(controller.Key)
	// Adopters returns the owners that may adopt an orphan.
	Adopters func(*corev1.Pod) []controller.Key
}

// Handlers are to be given to Watch.
func (o Pods) Handlers() controller.Handlers[*corev1.Pod] {
	return controller.Handlers[*corev1.Pod]{Add: o.added, Update: o.updated, Delete: o.deleted}
}

func (o Pods) added(p *corev1.Pod) {
	if p.DeletionTimestamp != nil {
		// A restarted controller may first see a pod when it is already on its way out.
		o.deleted(p)
		return
	}
	if key, uid, ok := ControllerKey(p, o.Kind); ok {
		o.Expect.Created(uid, 1)
		o.Wake(key)
		return
	}
	o.offer(p)
}

func (o Pods) updated(old, p *corev1.Pod) {
	if old.ResourceVersion == p.ResourceVersion {
		return
	}
	if p.DeletionTimestamp != nil {
		o.deleted(p)
		return
	}
	was, wasUID, hadOwner := ControllerKey(old, o.Kind)
	key, uid, ok := ControllerKey(p, o.Kind)
	if hadOwner && wasUID != uid {
		o.Wake(was)
	}
	if ok {
		o.Wake(key)
		return
	}
	if hadOwner || !labels.Equals(old.Labels, p.Labels) {
		o.offer(p)
	}
}

func (o Pods) deleted(p *corev1.Pod) {
	if key, uid, ok := ControllerKey(p, o.Kind); ok {
		o.Expect.Deleted(uid, p.UID)
		o.Wake(key)
	}
}

// offer wakes the owners that may adopt the pod.
func (o Pods) offer(p *corev1.Pod) {
	if metav1.GetControllerOfNoCopy(p) != nil {
		return
	}
	for _, key := range o.Adopters(p) {
		o.Wake(key)
	}
}
